"""Files of the metadata table that are handed on are those that a new listing finds."""

import random
from pathlib import Path

import pytest

from hudi_services.file_names import log_file_name
from hudi_services.metadata.partition_files import PartitionFiles
from hudi_services.recent import Recent
from hudi_services.stores import open_storage
from hudi_services.table_config import METADATA_TABLE_FOLDER

INITIAL = ["00000000000000001", "00000000000000002"]


def name(rng: random.Random, number: int, version: int) -> str:
    """A log file of version 6, of 8 and 9, a base file, or no file of a table."""
    file_id, instant = f"files-000{rng.randrange(3)}-0", f"20260101{number:09d}"
    of_slice = rng.choice([*INITIAL, "20260101000000000"])
    return rng.choice(
        [
            log_file_name(file_id, of_slice if version == 6 else instant, rng.randrange(1, 20), f"{number}-0-1"),
            f"{file_id}_{number}-0-1_{rng.choice([instant, of_slice])}.hfile",
            f"note-{number}.txt",
        ]
    )


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("seed", range(8))
def test_handed_on(version: int, seed: int, tmp_path: Path) -> None:
    rng, storage = random.Random(seed), open_storage(str(tmp_path))
    partitions = ["files", "column_stats"]
    known = PartitionFiles(storage)
    for number in range(60):
        partition = rng.choice(partitions)
        folder = f"{METADATA_TABLE_FOLDER}/{partition}"
        there = [file.path for file in storage.list_dir(folder)[0]]
        if there and rng.random() < 0.3:
            gone = rng.sample(there, rng.randrange(1, min(4, len(there)) + 1))
            for path in gone:
                storage.delete(path)
            known = known.handed_on([], gone)
        elif f"{folder}/{(new := name(rng, number, version))}" not in there:
            storage.create(f"{folder}/{new}", b"x" * number)
            known = known.handed_on([file for file in storage.list_dir(folder)[0] if file.name == new], [])
        fresh = PartitionFiles(storage)
        for one in partitions:
            if rng.random() < 0.5:
                assert known.of(one) == fresh.of(one)
                assert known.earliest_instants(one) == fresh.earliest_instants(one)
                assert {*known.names_now(one)} >= {*fresh.of(one)}
                numbers = known.log_numbers(one)
                # A number is not given twice, even if its file is gone.
                assert all(numbers[key] >= found for key, found in fresh.log_numbers(one).items())


def test_a_look_that_takes_long_serves_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [100.0], list[float]()

    def look() -> float:
        looks.append(now[0])
        now[0] += cost
        return looks[-1]

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.process_time", lambda: now[0])
    cost, recent = 0.0, Recent(look)
    for _ in range(5):
        recent()
    assert len(looks) == 5
    looks.clear()
    cost = 1.0
    for _ in range(1000):
        assert now[0] - recent() <= 4.0
        now[0] += 0.1
    # A quarter of the time.
    assert len(looks) == pytest.approx((now[0] - looks[0]) / 4, rel=0.05)
