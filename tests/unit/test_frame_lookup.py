"""The parts that the rows of a data frame are divided into, for the look-up of their keys."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_services.codecs.java_hash import file_group_indexes
from hudi_services.ingest.frame_lookup import Division, _batches
from hudi_services.merging.log_records import KEY
from hudi_services.merging.spill import by_key
from hudi_services.metadata.record_index.shards import Shards
from hudi_services.model import FileSlice

KEYS = pa.chunked_array([[f"k{n:05d}" for n in range(600)], [f"other {n}" for n in range(400)]])
GLOBAL = Shards(tuple(f"record-index-{n:04d}-0" for n in range(6)))
PARTITIONED = Shards(tuple(f"record-index-{day}-{n:04d}-0" for day in ("d0", "d1") for n in range(3)))


@pytest.mark.parametrize("shards", [None, GLOBAL, PARTITIONED], ids=["none", "global", "partitioned"])
@pytest.mark.parametrize("parts", [1, 4, 6, 12])
def test_rows_of_a_key_go_to_one_part(shards: Shards | None, parts: int) -> None:
    division = Division(parts, shards)
    found = division.of_rows("d1", KEYS)
    again = np.random.default_rng(1).permutation(len(KEYS))
    assert (division.of_rows("d1", KEYS.take(pa.array(again))) == found[again]).all()
    assert set(found.tolist()) <= set(range(parts)) and (parts < 4 or len(set(found.tolist())) > 1)
    if shards is None:
        return
    of = np.asarray(shards.of("d1"))[file_group_indexes(KEYS, len(shards.of("d1")))]
    for part in set(found.tolist()):
        # No part needs more file groups of the index than it must.
        assert len(set(of[found == part].tolist())) <= -(-6 // parts)
    # A partition without file groups has no records to look up.
    assert set(division.of_rows("new", KEYS).tolist()) <= set(range(parts))


@pytest.mark.parametrize("parts", [8, 200])
def test_the_rows_of_a_part_can_be_divided_again(parts: int) -> None:
    """Rows that do not fit into the memory of their task are divided among files by another number."""
    keys = pa.chunked_array([[f"k{n:06d}" for n in range(40_000)]])
    table = pa.table({KEY: keys.filter(pa.array(Division(parts).of_rows("", keys) == 3))})
    found = by_key([table], 8)
    counts = [spill.read().num_rows for spill in found.spills]
    found.close()
    assert sum(counts) == table.num_rows and max(counts) < table.num_rows / 4


def test_files_are_read_by_few_tasks() -> None:
    small = [FileSlice("", f"{n:08d}-4cf5-4bb2-8e27-0242ac120002-0", "1", None) for n in range(5)]
    assert _batches(small) == [small]
    assert _batches([]) == []
