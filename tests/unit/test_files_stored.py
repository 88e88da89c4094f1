"""Right before a commit every new file is found as it was written, however many there are in a folder."""

import random
from pathlib import Path

import pytest

from hudi_services.commit.expectations import FilesStored
from hudi_services.errors import CheckFailed
from hudi_services.model import WriteStat, path_in

from .counting_storage import CountingStorage
from .tables import open_local, unpack

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_file_that_is_gone_or_has_another_size_is_noticed(seed: int, tmp_path: Path) -> None:
    """The folders have older files, too; a request for each new file is sent where they are few."""
    rng = random.Random(seed)
    table = open_local(unpack("1.2.0", tmp_path))
    root = tmp_path / "new"
    stats: list[WriteStat] = []
    counts = {partition: rng.choice((1, 3, 16, 17, 40)) for partition in rng.sample(("", "a", "a/b", "c=ü", "d"), 3)}
    for partition, count in counts.items():
        (root / partition).mkdir(parents=True, exist_ok=True)
        (root / partition / "older.parquet").write_bytes(b"older")
        for number in range(count):
            path = path_in(partition, f"{number}.parquet")
            (root / path).write_bytes(bytes(number + 1))
            stats.append(WriteStat(partition, f"{number}", path, file_size=number + 1))
    rng.shuffle(stats)
    storage = CountingStorage(str(root))
    stored = FilesStored(storage, stats)
    stored.check(table)
    assert sum(one.method == "list" for one in storage.requests) == sum(count > 16 for count in counts.values())
    assert sum(one.method == "head" for one in storage.requests) == sum(n for n in counts.values() if n <= 16)
    damaged = rng.choice(stats)
    if rng.random() < 0.5:
        (root / damaged.path).unlink()
    else:
        (root / damaged.path).write_bytes(bytes(damaged.file_size + 1))
    with pytest.raises(CheckFailed, match="is not there as it was written"):
        stored.check(table)
