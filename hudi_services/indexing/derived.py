"""Indexes whose records are computed from rows: those of new files, for their commit (`derived_records`)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..commit.new_files import NewFiles
from ..derived_indexes.expression_index.definitions import ExpressionIndex, expression_indexes
from ..engine import Engine
from ..errors import UnsupportedTable
from ..metadata.records.keys import BLOOM_FILTERS
from ..model import FileSlice, WriteStat
from ..options import Options, file_keys
from ..snapshot import Snapshot

# Tables without such an index do without Arrow.
if TYPE_CHECKING:
    from ..derived_indexes.expression_index.index import Computation, ComputedIndex


@dataclass(frozen=True, slots=True)
class DerivedIndexes:
    """The expression indexes of a table, and how they are computed."""

    computations: "tuple[Computation, ...]" = ()

    @staticmethod
    def check(table: Snapshot) -> None:
        """Raise UnsupportedTable for an index of an unknown kind, and CorruptFile."""
        if table.metadata is not None:
            expression_indexes(table.metadata)

    @classmethod
    def of(cls, table: Snapshot, options: Options) -> "DerivedIndexes":
        """All of them. Raises UnsupportedTable for an index that is not computed here."""
        if table.metadata is None:
            return cls()
        return cls(tuple(_computation(table, one, options) for one in expression_indexes(table.metadata)))

    @classmethod
    def comparable(cls, table: Snapshot, options: Options) -> "DerivedIndexes":
        """Those whose records can be compared with the rows.

        An index that depends on a time zone is left out unless the zone is set: a wrong guess would make every record
        a difference.
        """
        if table.metadata is None:
            return cls()
        found = []
        for index in expression_indexes(table.metadata):
            with suppress(UnsupportedTable):
                one = _computation(table, index, options)
                if options[file_keys.SESSION_TIME_ZONE] or not one.expression().zoned:
                    found.append(one)
        return cls(tuple(found))

    def __bool__(self) -> bool:
        return bool(self.computations)

    def refuse_log_files(self, table: Snapshot) -> None:
        """Raise UnsupportedTable beside bloom filters: log files have none, nor does Hudi write any there."""
        for one in self.computations:
            if one.index.kind == BLOOM_FILTERS:
                raise UnsupportedTable(
                    f"{table.storage.root} has the index {one.index.partition} of bloom filters, and no release of "
                    "Apache Hudi writes log files beside one",
                    hint="drop the index first",
                )

    def records(
        self,
        engine: Engine,
        table: Snapshot,
        files: NewFiles,
        written: Sequence[WriteStat],
        inputs: Sequence[FileSlice] = (),
    ) -> "tuple[ComputedIndex, ...]":
        """As `derived_records.computed_records`; () where there are no such indexes."""
        if not self.computations or table.metadata is None:
            return ()
        from .derived_records import computed_records

        return computed_records(self.computations, engine, table.metadata, files, written, inputs)


def _computation(table: Snapshot, index: ExpressionIndex, options: Options) -> "Computation":
    from ..base_files.bloom import BloomSettings
    from ..derived_indexes.expression_index.index import computation
    from ..derived_indexes.expression_index.time_functions import Zone

    assert table.metadata is not None, "the index is a part of it"
    return computation(table.metadata, index, table.schema, Zone.of_session(options), options.of(BloomSettings))
