"""Tables that real Hudi bootstrapped (tests/fixtures/bootstrap), with their source files and the right rows."""

import json
import tarfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from hudi_services.base_files.source_folder import SourceFolder
from hudi_services.model import BOOTSTRAP_INSTANT
from hudi_services.snapshot import with_sources
from hudi_services.writing.writer_schema import WriterSchema

from .tables import as_written, open_local

_FIXTURES = Path(__file__).parents[1] / "fixtures/bootstrap"
Row = dict[str, Any]


class Bootstrapped:
    """One table in the folder `folder`; the fixtures say that its sources are in another one."""

    def __init__(self, release: str, name: str, folder: Path) -> None:
        with tarfile.open(_FIXTURES / f"{release}.tar.xz") as archive:
            members = [one for one in archive.getmembers() if one.name.startswith(f"{name}/")]
            for one in members:
                one.name = one.name.removeprefix(f"{name}/")
            archive.extractall(folder, members, filter="data")
        self.path, self.source = folder / "table", folder / "source"
        as_written(self.path)
        self.allowed = {"hudi.services.bootstrap.source": str(self.source)}
        self.rows = ordered(json.loads((folder / "rows.json").read_text())["rows"])

    def seen(self) -> list[Row]:
        """The rows by our reader."""
        table = with_sources(open_local(self.path), SourceFolder(str(self.source)))
        assert table.schema is not None
        target = WriterSchema(table.schema.without_meta(), has_meta=True).target
        names = [name for name in target.columns if not name.startswith("_hoodie_")]
        found: list[Row] = []
        for one in table.view.live_slices():
            for _, rows in table.slices.open(one).tables(names, target):
                found += rows.to_pylist()
        return ordered([{name: plain(value) for name, value in row.items()} for row in found])

    def bare(self) -> list[str]:
        """The file ids of live slices without columns."""
        return [
            one.file_id for one in open_local(self.path).view.live_slices() if one.base_instant == BOOTSTRAP_INSTANT
        ]


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value
