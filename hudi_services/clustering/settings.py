"""How new base files are written: plain values, for the driver and the tasks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """`hoodie.index.bloom.*` and `hoodie.bloom.index.filter.*`."""

    entries: int = 60_000
    false_positive_rate: float = 1e-9
    max_entries: int = 100_000
    filter_type: str = "DYNAMIC_V0"


@dataclass(frozen=True, slots=True)
class FileSettings:
    """`bloom` is None where Hudi writes no filter. Sizes in bytes."""

    codec: str = "zstd"
    row_group_bytes: int = 120 << 20
    page_bytes: int = 1 << 20
    bloom: BloomSettings | None = BloomSettings()
