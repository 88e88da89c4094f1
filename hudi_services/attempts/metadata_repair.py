"""A repair of the metadata table: a delta commit of its own, without an instant on the table's timeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata_updates.repair_plan import Wanted
from ..metadata_updates.sync import sync_repair
from ..snapshot import Snapshot


@dataclass(slots=True)
class RepairDraft:
    """The records that readers should find in `metadata`; the fields are the arguments of `sync_repair`.

    `done_at` and `written` are the result: the instant on the timeline of the metadata table, None when nothing was
    written, and the number of keys written or deleted by metadata partition.
    """

    metadata: MetadataTable
    expected: Wanted
    index_delta: IndexDelta | None
    damaged: Sequence[str]
    instant: None = None
    expectations: Sequence[Expectation] = ()
    done_at: str | None = None
    written: Mapping[str, int] = field(default_factory=dict)

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        instant, self.written = sync_repair(self.metadata, self.expected, times, self.index_delta, self.damaged)
        self.done_at = instant if self.written else None

    def content(self, current: Snapshot) -> bytes:
        raise AssertionError("a repair completes no instant of the table")
