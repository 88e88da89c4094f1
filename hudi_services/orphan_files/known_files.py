"""The verdict on each data file of a table, by one snapshot: live, orphan, or in doubt.

Readers see a file when its instant is a completed write of the active timeline, or is older than the start of that
timeline. Some of the older instants were rolled back; only the archive, a rollback or the metadata table shows which.
Sources: AbstractTableFileSystemView, BaseRollbackActionExecutor of Apache Hudi.
"""

from collections.abc import Collection

from ..computed_once import cached_property
from ..errors import CorruptFile, NotFound
from ..file_names import parse_log_file
from ..model import DataFile, LogFile
from ..snapshot import Snapshot
from ..table.file_ledger import NEVER_REPEATED
from ..table.view import CHANGE_DATA
from ..timeline.archived_instants import ArchivedInstants
from .model import OrphanKind, ReasonToStay, Verdict
from .slice_logs import SliceLogs


class FileJudge:
    """Judges the data files of `table`, which must have been opened after the files were listed.

    Then the instant of a writer that begins in between is on the timeline as pending. Raises CorruptFile for pending
    plans, rollbacks and savepoints that cannot be read, because the files that they name must not be moved.
    """

    def __init__(self, table: Snapshot) -> None:
        self._table = table
        self._timeline = table.timeline
        self._ledger = table.ledger
        self._writes = self._ledger.writes
        # Files that a savepoint hides from readers may be needed again.
        self._first = self._timeline.archived_until()
        self._of_gone: dict[str, Verdict] = {}
        self._listing: tuple[str, frozenset[str]] | None = None
        self._unread_archive: list[str] = []

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the commits, and with the archive, that could not be read."""
        return [*self._ledger.unreadable.values(), *self._unread_archive]

    def is_live(self, file: DataFile) -> bool:
        """Whether a commit, the metadata table or the archive has the file, so that it needs no judgement later."""
        if self._is_log_of_slice(file):
            return self._is_listed(file) or file.name in self._written_logs
        if file.instant in self._writes:
            return self._is_committed(file) or self._is_listed(file)
        if self._table.metadata is not None:
            return self._is_old(file.instant) and self._is_listed(file)
        return self._is_old(file.instant) and self._is_archived(file.instant)

    def judge(self, file: DataFile) -> Verdict:
        if isinstance(file, LogFile) and self._is_log_of_slice(file):
            return self._judge_log_of_slice(file)
        if file.instant in self.pending:
            return ReasonToStay.PENDING
        listed = self._is_listed(file)
        if listed and (file.instant in self._writes or self._is_old(file.instant)):
            return None
        verdict = self._beside_commit(file) if file.instant in self._writes else self._of_instant(file.instant)
        if not isinstance(verdict, OrphanKind):
            return verdict
        if listed:
            # Timeline files that were deleted by hand leave the attempt in the metadata table of versions 8 and 9.
            return ReasonToStay.LISTED
        return self._held.get((file.partition, file.name)) or self._in_group(file) or verdict

    def beyond_knowledge(self, file: DataFile) -> ReasonToStay | None:
        """Why a later snapshot cannot decide about an old file that is not live; None for a file to be judged later."""
        if self._is_log_of_slice(file):
            return None
        if not self._is_old(file.instant) or file.instant in self._writes or file.instant in self.pending:
            return None
        verdict = self._of_instant(file.instant)
        return verdict if verdict in (ReasonToStay.UNREADABLE_ARCHIVE, ReasonToStay.NOT_IN_ARCHIVE) else None

    def attempt(self, file: DataFile) -> str:
        """The instant that wrote an orphan file."""
        if isinstance(file, LogFile) and self._is_log_of_slice(file):
            writers = self._slice_logs.writers(file)
            return max(writers.instants) if writers is not None and writers.instants else ""
        return file.instant

    def is_held(self, file: DataFile) -> bool:
        """Whether a savepoint or a pending plan names the file."""
        return (file.partition, file.name) in self._held

    @property
    def readers_list_storage(self) -> bool:
        """Whether the table has no metadata table, so that readers see all old files; so does a clean, which may have
        deleted a file that a rolled back file seemed to supersede."""
        return self._table.metadata is None

    def begun_by_dead_attempts(self, files: Collection[DataFile]) -> frozenset[str]:
        """The ids of the file groups of rolled back `files` that no completed write of the archive has written to."""
        asked = {file.file_id for file in files if self._archive is not None and self._archive.surrounds(file.instant)}
        if not asked:
            return frozenset()
        return frozenset(asked) - self._read_archive(asked).written

    @cached_property
    def pending(self) -> frozenset[str]:
        """The times of pending instants, and of instants that a pending rollback is about to undo."""
        return self._ledger.pending | self._ledger.being_undone

    def action(self, ts: str) -> str | None:
        """The action of an instant by the timeline, a rollback, or the archive (if it was read); None if unknown."""
        found = self._timeline.find(ts)
        if found is not None:
            return found.action.value
        archive = self.__dict__.get("_archive")
        known = (archive.completed, archive.unfinished, archive.rolled_back) if archive else ()
        return next((one[ts] for one in (self._ledger.rolled_back, *known) if one.get(ts)), None)

    def _beside_commit(self, file: DataFile) -> Verdict:
        names = self._ledger.names_of(file.instant)
        if names is None:
            return ReasonToStay.UNREADABLE_COMMIT
        # Change-data files stay, also those of repeated tasks.
        if self._is_committed(file) or (isinstance(file, LogFile) and file.suffix == CHANGE_DATA):
            return None
        return OrphanKind.STRAY if self._table.metadata is not None else ReasonToStay.SUSPICIOUS

    def _judge_log_of_slice(self, log: LogFile) -> Verdict:
        """The verdict by the instants of the blocks: an orphan file has only blocks of attempts that are gone."""
        # Change-data files stay, also those of repeated tasks.
        if self.is_live(log) or (log.suffix == CHANGE_DATA and log.instant in self._writes):
            return None
        writers = self._slice_logs.writers(log)
        if writers is None:
            return ReasonToStay.LOG_OF_SLICE
        if writers.instants & self.pending or log.instant in self.pending:
            return ReasonToStay.PENDING
        if writers.is_cancelled:
            return ReasonToStay.CANCELLED
        if any(one in self._writes or self._is_archived(one) for one in writers.instants):
            # Readers that list storage see its records.
            return ReasonToStay.LOG_OF_SLICE if self._table.metadata is not None else None
        verdicts = {self._of_instant(one) for one in writers.instants}
        for verdict in verdicts:
            if not isinstance(verdict, OrphanKind):
                return verdict
        if not verdicts or log.suffix == CHANGE_DATA:
            return ReasonToStay.LOG_OF_SLICE
        held = self._held.get((log.partition, log.name)) or self._in_group(log)
        return held or (OrphanKind.ROLLED_BACK if OrphanKind.ROLLED_BACK in verdicts else verdicts.pop())

    def _of_instant(self, ts: str) -> Verdict:
        if ts not in self._of_gone:
            self._of_gone[ts] = self._gone(ts)
        return self._of_gone[ts]

    def _gone(self, ts: str) -> Verdict:
        """The verdict on files that no metadata table lists, of an instant that is no write of the timeline."""
        if self._timeline.find(ts) is not None:
            return ReasonToStay.OTHER_ACTION
        archive = self._archive
        if archive is None:
            return ReasonToStay.UNREADABLE_ARCHIVE
        # Also for times inside the timeline: while Hudi archives, a listing may lack some of the removed files.
        if ts in archive.completed:
            return None
        if self._first is None:
            return ReasonToStay.NO_TIMELINE
        if not self._is_old(ts):
            return OrphanKind.DEAD_ATTEMPT
        listed = self._table.metadata is not None
        surrounded = archive.surrounds(ts) and ts not in archive.unfinished
        action = self._ledger.rolled_back.get(ts) or archive.rolled_back.get(ts)
        # Another attempt at a clustering has the same instant, and may have been completed and archived since then.
        if action is not None and (action in NEVER_REPEATED or surrounded or listed):
            return OrphanKind.ROLLED_BACK
        return OrphanKind.NEVER_COMMITTED if surrounded and listed else ReasonToStay.NOT_IN_ARCHIVE

    def _is_old(self, ts: str) -> bool:
        return self._first is not None and ts < self._first

    def _is_archived(self, ts: str) -> bool:
        return self._archive is not None and ts in self._archive.completed

    def _is_listed(self, file: DataFile) -> bool:
        """Whether the metadata table has the file. The last partition's listing is kept: files come by partition."""
        if self._table.metadata is None:
            return False
        if self._listing is None or self._listing[0] != file.partition:
            self._listing = (file.partition, frozenset(self._table.metadata.list_partition(file.partition)))
        return file.name in self._listing[1]

    def _is_committed(self, file: DataFile) -> bool:
        # An upgrade leaves log files with the time of their slice in the name: the commits of other times name them.
        names = self._written_logs if isinstance(file, LogFile) else self._ledger.names_of(file.instant)
        return names is not None and file.name in names

    def _is_log_of_slice(self, file: DataFile) -> bool:
        return isinstance(file, LogFile) and self._table.log_naming.writer(file) is None

    @cached_property
    def _slice_logs(self) -> SliceLogs:
        return SliceLogs(self._table.storage)

    @cached_property
    def _written_logs(self) -> frozenset[str]:
        """The log files that completed writes of the timeline name."""
        names = (self._ledger.names_of(ts) or () for ts in self._writes)
        return frozenset(name for some in names for name in some if parse_log_file("", name, 0) is not None)

    @cached_property
    def _archive(self) -> ArchivedInstants | None:
        try:
            return self._timeline.archived
        except (CorruptFile, NotFound) as error:
            self._unread_archive.append(error.message)
            return None

    def _read_archive(self, file_ids: Collection[str]) -> ArchivedInstants:
        folder = self._table.config.history_path
        return self._timeline.layout.read_archive(self._table.storage, folder, file_ids)

    @cached_property
    def _held(self) -> dict[tuple[str, str], ReasonToStay]:
        """(partition, name) of files that savepoints and pending plans name."""
        held = dict.fromkeys(self._ledger.planned | self._ledger.going, ReasonToStay.IN_PLAN)
        return held | dict.fromkeys(self._ledger.held, ReasonToStay.IN_SAVEPOINT)

    def _in_group(self, file: DataFile) -> ReasonToStay | None:
        """A pending compaction may need any file of its groups."""
        return ReasonToStay.IN_PLAN if (file.partition, file.file_id) in self._ledger.groups_in_compactions else None
