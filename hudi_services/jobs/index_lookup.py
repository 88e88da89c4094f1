"""The lookup job: find the location of the record of each key in the record index. Starts no JVM."""

import pyarrow as pa

from ..clock import instant_of_millis
from ..errors import ConfigError, CorruptFile
from ..metadata.record_index.locations import HUDI_ZONE
from ..metadata.record_index.lookup import AccessRule, Locations, look_up
from ..metadata.records.keys import RECORD_INDEX
from ..own_commands import own_command
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.report_rows import LocationRow
from ..runs.request import LookupRequest
from ..storage import Storage


def index_lookup(request: LookupRequest, storage: Storage | None = None) -> Report:
    """Look up `request.keys`; the report lists the keys that were found. `storage` replaces that of `base_path`."""
    report = Report.start(request)
    places = find_locations(request, storage, report)
    report.show(LocationRow, map(LocationRow, *(column.to_pylist() for column in places.columns)))
    return report.completed(None)


def find_locations(request: LookupRequest, storage: Storage | None, report: Report) -> pa.Table:
    """The locations of `request.keys`, as `locations_table` gives them.

    Raises ConfigError when there is no record index, and CorruptFile.
    """
    run = open_supported(request, storage, report, repairs=True)
    table = run.table
    if table.metadata is None or RECORD_INDEX not in table.config.metadata_partitions:
        raise ConfigError(
            f"{table.storage.root} has no record index",
            hint=f"build it: {own_command('index-bootstrap', table.storage.root)}",
        )
    with report.phase("look up"):
        found = look_up(table.metadata, request.keys, run.options.of(AccessRule), request.partition)
    try:
        places = locations_table(request.keys, found)
    except (ValueError, OverflowError, OSError) as error:
        raise CorruptFile(
            f"the record index of {table.storage.root} holds an instant that is not a time: {error}",
            hint=f"run: {own_command('validate', table.storage.root, '--apply')}",
        ) from error
    report.rows = InOut(len(request.keys), places.num_rows)
    report.files = InOut(found.seeks + found.scans, None)
    return places


def locations_table(keys: pa.Array, locations: Locations) -> pa.Table:
    """The keys that were found, in their order: key, partition, file_id and instant, all text.

    Raises ValueError, OverflowError or OSError for an instant that is not a time.
    """
    there = pa.array(locations.positions >= 0)
    places = pa.array(locations.positions).filter(there)
    columns = {
        "partition": [at.partition for at in locations.locations],
        "file_id": [at.file_id for at in locations.locations],
        "instant": [instant_of_millis(at.instant_millis, HUDI_ZONE) for at in locations.locations],
    }
    taken = {name: pa.array(values, pa.string()).take(places) for name, values in columns.items()}
    return pa.table({"key": keys.filter(there), **taken})
