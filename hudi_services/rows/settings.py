"""How new base files are written: plain values, for the driver and the tasks."""

from dataclasses import dataclass, field

from ..base_files.bloom import BloomSettings


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings of new base files. Sizes in bytes, of row groups in memory. `bloom`: None where Hudi writes none."""

    codec: str = "zstd"
    file_bytes: int = 1 << 30
    row_group_bytes: int = 120 << 20
    page_bytes: int = 1 << 20
    bloom: BloomSettings | None = field(default_factory=BloomSettings)
