"""File sizing: the numbers of Hudi's document, and what holds for all numbers."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hudi_services.model import BaseFile, CommitMetadata, FileSlice, LogFile, WriteStat
from hudi_services.writing.sizing import (
    SizingRules,
    average_record_bytes,
    insert_buckets,
    small_files,
)

MB = 1_000_000
RULES = SizingRules(max_file=120 * MB, small_file=100 * MB, split_rows=120_000, auto_split=False, record_estimate=1000)


def slices(*sizes: int) -> list[FileSlice]:
    return [FileSlice.of_base(BaseFile("p", f"f{n}", f"f{n}", "0-0-0", "1", size)) for n, size in enumerate(sizes)]


def assigned(inserts: int, found: list[FileSlice], rules: SizingRules, record_bytes: int = 1000) -> list[int]:
    return [one.inserts for one in insert_buckets(inserts, found, record_bytes, rules)]


def test_the_numbers_of_the_document() -> None:
    """Limits of 120 and 100 MB, files of 40, 80, 90, 130 and 105 MB, records of 1000 bytes."""
    files = slices(40 * MB, 80 * MB, 90 * MB, 130 * MB, 105 * MB)
    small = small_files(files, [], RULES)
    assert [one.base_bytes // MB for one in small] == [40, 80, 90]
    assert assigned(450_000, small, RULES) == [80_000, 40_000, 30_000, 120_000, 120_000, 60_000]
    assert assigned(450_000, small, replace(RULES, auto_split=True)) == [
        *(80_000, 40_000, 30_000),
        *(120_000, 120_000, 60_000),
    ]
    assert assigned(100_000, small, RULES) == [80_000, 20_000]
    assert small_files(files, [], replace(RULES, small_file=0)) == []
    assert assigned(450_000, [], RULES) == [120_000, 120_000, 120_000, 90_000]
    assert assigned(300_000, [], RULES) == [120_000, 120_000, 60_000]
    # A group in a pending clustering is left alone.
    rest = small_files(files, [("p", "f0")], RULES)
    assert sum(one.inserts for one in insert_buckets(450_000, rest, 1000, RULES) if one.filled) == 70_000
    assert assigned(200_000, small, replace(RULES, auto_split=True), 2000) == [
        *(40_000, 20_000, 15_000),
        *(60_000, 60_000, 5_000),
    ]
    nearly = slices(119_999_500)
    assert assigned(10, small_files(nearly, [], replace(RULES, small_file=120 * MB)), RULES) == [10]
    assert insert_buckets(10, nearly, 1000, RULES)[0].filled is None


def test_slices_with_log_files_are_not_filled() -> None:
    one = slices(MB)[0]
    log = LogFile("p", ".f0_1.log.1_0-0-0", "f0", "1", 1, "0-0-0", "", 10)
    assert small_files([replace(one, log_files=(log,))], [], RULES) == []


@given(
    inserts=st.integers(1, 10_000_000),
    sizes=st.lists(st.integers(0, 200 * MB), max_size=6),
    record_bytes=st.integers(1, 1_000_000),
    auto=st.booleans(),
)
def test_every_row_has_its_place(inserts: int, sizes: list[int], record_bytes: int, auto: bool) -> None:
    rules = replace(RULES, auto_split=auto, split_rows=1_000_000)
    buckets = insert_buckets(inserts, small_files(slices(*sizes), [], rules), record_bytes, rules)
    assert sum(one.inserts for one in buckets) == inserts
    assert all(one.inserts > 0 for one in buckets)
    filled = [one for one in buckets if one.filled is not None]
    assert buckets[: len(filled)] == filled
    for one in filled:
        assert one.filled is not None
        assert one.filled.base_bytes < rules.small_file
        assert one.filled.base_bytes + one.inserts * record_bytes <= rules.max_file
    new = [one.inserts for one in buckets[len(filled) :]]
    assert len({*new[:-1]}) <= 1 and (not new or new[-1] <= new[0])
    if auto:
        assert all((rows - 1) * record_bytes < rules.max_file for rows in new)


def commit(*files: tuple[int, int], name: str = "f.parquet") -> CommitMetadata:
    stats = [WriteStat("p", "f", f"p/{name}", num_writes=rows, total_write_bytes=size) for rows, size in files]
    return CommitMetadata("INSERT", {"p": tuple(stats)})


def test_the_newest_commit_that_is_large_enough_tells_the_record_size() -> None:
    large, small = commit((1000, 90 * MB), (999, 90 * MB)), commit((10, 100 * MB))
    assert average_record_bytes([large, commit((10, 300 * MB))], RULES) == -(-180 * MB // 1999)
    # Not larger than the limit: the next one tells.
    assert average_record_bytes([small, large], RULES) == -(-180 * MB // 1999)
    assert average_record_bytes([small], RULES) == 1000
    assert average_record_bytes([small], replace(RULES, small_file=0)) == 10 * MB
    assert average_record_bytes([commit((0, 300 * MB))], RULES) == 1000
    overhead = replace(RULES, file_overhead=10 * MB)
    assert average_record_bytes([large], overhead) == -(-160 * MB // 1999)
    # Log files do not count.
    assert average_record_bytes([commit((10, 300 * MB), name=".f_1.log.1_0-0-0")], RULES) == 1000
