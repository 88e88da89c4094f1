"""`make bench-plan`: planning over tables of 10 thousand, 100 thousand and a million file slices, ten in a partition.

This script makes their metadata table and timeline from those of a small table that real Apache Hudi 1.2.0 wrote (one
of the unit tests'), as if a commit that is archived had written them. Only the first partitions, which a plan takes,
have data files, with a footer alone: a plan by size reads no more of them. Seconds and memory (MiB) are those of whole
processes.
"""

import argparse
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

from bench import ROOT, command
from process_memory import PeakMemory

sys.path.insert(0, str(ROOT))

from hudi_services.hfile.hfile_writer import write_hfile
from hudi_services.metadata.records.codec import encode_record
from hudi_services.metadata.records.keys import ALL_PARTITIONS_KEY
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType
from hudi_services.metadata.records.record_schema import stored_schema
from tests.unit.tables import unpack

_RELEASE = "1.2.0"
_PER_PARTITION = 10
_WITH_FILES = 100
"""Partitions with data files; a plan has thirty groups at most."""
_ARCHIVED = "20200101000000000"


def main() -> None:
    parser = argparse.ArgumentParser(description="Planning over many file slices.")
    parser.add_argument("--slices", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    lines = []
    for slices in arguments.slices:
        with tempfile.TemporaryDirectory(prefix="plan-") as folder:
            path = _table(Path(folder), slices // _PER_PARTITION)
            cells = [f"{slices:,}", f"{slices // _PER_PARTITION:,}"]
            for flags in (("--dry-run",), ()):
                memory = PeakMemory()
                seconds, _ = command("schedule", path, *flags, memory=memory)
                cells += [f"{seconds:.1f}", f"{memory.largest['python']}"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr)
    print("\n| file slices | partitions | dry run, s | MiB | schedule, s | MiB |\n|---|---|---|---|---|---|")
    print("\n".join(lines))


def _table(folder: Path, partitions: int) -> Path:
    path = unpack(_RELEASE, folder)
    listing = path / ".hoodie/metadata/files"
    base = min(listing.glob("*.hfile"))
    for file in listing.glob(".files-*"):
        file.unlink()
    for commit in (path / ".hoodie/metadata/.hoodie/timeline").glob("2*.deltacommit*"):
        commit.unlink()
    model = min(path.glob("day=*/*.parquet")).read_bytes()
    footer = model[-8 - int.from_bytes(model[-8:-4], "little") :]
    for data in path.glob("day=*"):
        shutil.rmtree(data)
    schema = stored_schema(_RELEASE)
    names = [f"day={number:06d}" for number in range(partitions)]
    everything = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, dict.fromkeys(names, FileEntry(0)))
    records = [everything, *(FilesRecord(name, RecordType.FILES, _files()) for name in names)]
    for record in records[1 : _WITH_FILES + 1]:
        (path / record.key).mkdir()
        for name, entry in record.entries.items():
            with (path / record.key / name).open("wb") as file:
                file.seek(entry.size - len(footer))
                file.write(footer)
    base.write_bytes(
        write_hfile([(one.key.encode(), encode_record(one, schema, typed=True)) for one in records], schema.text)
    )
    return path


def _files() -> dict[str, FileEntry]:
    return {
        f"{uuid.uuid4()}-0_{task}-13-{task}_{_ARCHIVED}.parquet": FileEntry(4_000_000 + task)
        for task in range(_PER_PARTITION)
    }


if __name__ == "__main__":
    main()
