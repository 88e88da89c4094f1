"""Hand-made writes of other writers, on tables without a metadata table."""

import shutil
from pathlib import Path

from hudi_services.commit.times import Times
from hudi_services.model import CommitMetadata, FileSlice, WriteStat
from hudi_services.timeline.instant import Action, State

from .tables import open_local


class OtherWriters:
    """`made` are the instants of their writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: list[str] = []

    def update(self, one: FileSlice) -> str:
        """A write that has updated a file group, and kept its rows; its instant."""
        ts = self._next()
        assert one.base_file is not None
        new = f"{one.partition}/{one.file_id}_9-9-9_{ts}.parquet"
        shutil.copy(self.path / one.base_file.path, self.path / new)
        stat = WriteStat(one.partition, one.file_id, new, num_writes=1, file_size=(self.path / new).stat().st_size)
        self._publish(ts, State.REQUESTED)
        self._publish(ts, State.INFLIGHT)
        self._publish(ts, State.COMPLETED, CommitMetadata("UPSERT", {one.partition: (stat,)}))
        return ts

    def commit_nothing(self) -> str:
        """A write without any rows; its instant."""
        ts = self._next()
        self._publish(ts, State.REQUESTED)
        self._publish(ts, State.INFLIGHT)
        self._publish(ts, State.COMPLETED, CommitMetadata("UPSERT", {}))
        return ts

    def begin(self, one: FileSlice) -> str:
        """A write in progress that updates a file group; its instant."""
        ts = self._next()
        self._publish(ts, State.REQUESTED)
        workload = CommitMetadata("UPSERT", {one.partition: (WriteStat(one.partition, one.file_id, ""),)})
        self._publish(ts, State.INFLIGHT, workload)
        return ts

    def end(self, ts: str) -> None:
        """The write was rolled back."""
        for file in self.path.glob(f".hoodie/**/{ts}.*"):
            file.unlink()

    def _next(self) -> str:
        self.made.append(Times(open_local(self.path), 0).next())
        return self.made[-1]

    def _publish(self, ts: str, state: State, commit: CommitMetadata | None = None) -> None:
        table = open_local(self.path)
        release = table.config.version.release
        data = table.timeline.layout.encode_commit(commit, release) if commit is not None else b""
        table.timeline.publish(ts, Action.COMMIT, state, data, Times(table, 0).next())
