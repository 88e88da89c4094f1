"""What hudi-rs makes of merge-on-read tables of every merge rule (tests/interop/histories.py), beside what Hudi read.

docs/readers.md tells of it. Only its release 0.5.0 was measured; a test of another one would say nothing of the page.
"""

from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest

from ..interop.readers import Refused, hudi_rs_rows
from . import histories
from .histories import MadeHistory

_RELEASES = ("0.15.0", "1.0.2", "1.2.0")
# By release and file group reader. Everything else is read as Hudi reads it.
OTHER_ROWS = {
    ("0.15.0", 2): (
        "default_order default_payload delete_marker event_time_payload floats_widened log_only of_date "
        "of_decimal of_double of_int of_string of_timestamp overwrite_latest"
    ),
    ("0.15.0", 1): (
        "aws_dms bucket default_order default_payload delete_marker event_time_payload first_value "
        "log_compaction_of_deletes mysql no_ordering non_defaults of_date of_decimal of_double of_int "
        "of_string of_timestamp overwrite_latest partial_update positions postgres"
    ),
    ("1.0.2", 2): "floats_widened log_compaction_of_deletes of_string",
    ("1.0.2", 1): "aws_dms mysql no_ordering of_string overwrite_latest postgres",
    ("1.2.0", 2): "postgres",
    ("1.2.0", 1): (
        "aws_dms bucket default_order default_payload event_time_payload no_ordering non_defaults null_int "
        "overwrite_latest partial_update positions postgres"
    ),
}
REFUSED = {
    ("0.15.0", 2): "aws_dms column_added first_value mysql non_defaults partial_update postgres",
    ("0.15.0", 1): "column_added floats_widened listed_log_only log_only order_widened",
    ("1.0.2", 2): "aws_dms column_added mysql postgres",
    ("1.0.2", 1): "column_added floats_widened merge_into order_widened",
    ("1.2.0", 2): "column_added listed_log_only mysql two_fields",
    ("1.2.0", 1): "column_added floats_widened listed_log_only log_only merge_into mysql order_widened two_fields",
}


@pytest.mark.parametrize("reader", [1, 2])
@pytest.mark.parametrize("release", _RELEASES)
def test_merge_rules_of_hudi_rs(release: str, reader: int, tmp_path: Path) -> None:
    measured = version("hudi") == "0.5.0"
    found = defaultdict(list)
    for name in histories.names(release):
        made = MadeHistory(release, name, tmp_path / name)
        wanted = made.steps[-1].rows
        if wanted is None:  # Hudi itself could not read it
            continue
        found[_result(made.path, wanted, reader)].append(name)
    assert not measured or found["other rows"] == OTHER_ROWS[release, reader].split()
    assert not measured or found["refused"] == REFUSED[release, reader].split()
    assert found["right"]


def _result(path: Path, wanted: list[dict[str, object]], reader: int) -> str:
    try:
        found = hudi_rs_rows(path, file_group_reader=reader).to_pylist()
    except Refused:
        return "refused"
    return "right" if _texts(found) == _texts(wanted) else "other rows"


def _texts(rows: list[dict[str, object]]) -> list[list[tuple[str, str]]]:
    """In any order of rows, without meta columns; values as text, as the histories have them."""
    return sorted(sorted((k, str(v)) for k, v in row.items() if not k.startswith("_hoodie_")) for row in rows)
