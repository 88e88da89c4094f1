"""The expression indexes of a table that a clustering must update."""

from ..metadata.expression_index.index import Computation, computations, expression_indexes
from ..snapshot import Snapshot, current_schema
from .request import ClusteringRequest
from .settings import bloom_settings, session_zone


def usable_expressions(wanted: ClusteringRequest, table: Snapshot) -> tuple[Computation, ...]:
    """The computations of the table's expression indexes. Raises UnsupportedTable for one that is not supported."""
    if table.metadata is None or not expression_indexes(table.metadata):
        return ()
    options = wanted.options
    return computations(table.metadata, current_schema(table), session_zone(options), bloom_settings(options))
