"""`doctor` against real Hudi: the rows that data skipping hides are those that it tells."""

import pytest

from . import ours
from .conftest import Tables
from .peer import Peer
from .reading import METADATA_ON

_SKIPPING = {**METADATA_ON, "hoodie.enable.data.skipping": "true"}


@pytest.mark.releases("1.0.2", "1.2.0")
def test_rows_that_a_not_a_number_hides(peer: Peer, table: Tables) -> None:
    """A filter on a column with a NaN misses rows, doctor says of how many, and after its advice none is missing."""
    path = table("types_row")
    every = peer.rows(path, METADATA_ON).to_pylist()
    # For Spark a NaN is greater than every number.
    right = [row["id"] for row in every if row["wide"] is not None and not row["wide"] <= 5]

    def found() -> list[int]:
        return sorted(row["id"] for row in peer.rows(path, _SKIPPING, where="wide > 5").to_pylist())

    hidden = len(right) - len(found())
    assert hidden > 0, "this release of Hudi gives the file its range"
    run = ours.run("doctor", path)
    assert run.code == 5
    (row,) = [one for one in run.report["tables"]["findings"] if one["subject"] == "wide"]
    files = {one["_hoodie_file_name"] for one in every}
    assert row["check"] == "hidden_rows"
    assert f"up to {sum(one['wide'] is not None for one in every)} rows in {len(files)} files" in row["finding"]
    ours.run("validate", path, "--apply").ok()
    assert found() == sorted(right)
    assert "hidden_rows" not in {one["check"] for one in ours.run("doctor", path).report["tables"]["findings"]}
    print(f"{peer.version}: {hidden} of {len(right)} rows were hidden")
