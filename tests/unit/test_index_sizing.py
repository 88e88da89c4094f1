import pytest

from hudi_services.errors import UnsupportedTable
from hudi_services.indexing.shard_count import GroupSizing, file_group_count
from hudi_services.metadata.record_index.shards import Shards


@pytest.mark.parametrize(
    ("keys", "sizing", "count"),
    [
        # HoodieTableMetadataUtil.estimateFileGroupCount with the same arguments.
        (0, GroupSizing(), 10),
        (123_000_000, GroupSizing(), 10),
        (1_000_000_000, GroupSizing(), 89),
        (1_000_000, GroupSizing(at_least=7, at_most=7), 7),
        (10**13, GroupSizing(), 10_000),
        (1_000_000, GroupSizing(at_least=1, growth=1.0, group_bytes=48_000), 1000),
    ],
)
def test_file_group_count(keys: int, sizing: GroupSizing, count: int) -> None:
    assert file_group_count(keys, sizing) == count


def test_shards_of_a_global_index_are_for_every_partition() -> None:
    shards = Shards(("record-index-0000-0", "record-index-0001-0"))
    assert not shards.is_partitioned
    assert list(shards.of("p0")) == list(shards.of("")) == [0, 1]


def test_shards_of_a_partitioned_index() -> None:
    ids = ("record-index-a%2Db-0000-0", "record-index-a%2Db-0001-0", "record-index-day=1%2F2-0000-0")
    shards = Shards(ids)
    assert shards.is_partitioned
    assert list(shards.of("a-b")) == [0, 1]
    assert list(shards.of("day=1/2")) == [2]
    with pytest.raises(UnsupportedTable, match="no file group for the partition 'c'"):
        shards.of("c")
