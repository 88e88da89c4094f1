"""Extra metadata that each commit takes over from the commits before it, by the options of Apache Hudi 1.2.

    hoodie.write.rolling.metadata.keys                            the keys, none by default
    hoodie.write.rolling.metadata.timeline.lookback.commits       how many commits are searched

The newest value counts, by completion; an empty one counts as missing, and one that the commit has itself stays.
Source: BaseHoodieClient.mergeRollingMetadata, apache/hudi#18421.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from ..options import commit_keys, value_of
from ..snapshot import Snapshot
from .conflicts import pending_writes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RollingMetadata:
    """The `keys` that are taken over, and how many commits are searched for them."""

    keys: tuple[str, ...] = value_of(commit_keys.ROLLING_KEYS)
    lookback: int = value_of(commit_keys.ROLLING_LOOKBACK)

    def carried(self, current: Snapshot, ts: str, own: Mapping[str, str]) -> dict[str, str]:
        """What the commit at `ts` takes over, beside its `own` extra metadata; the caller holds the lock.

        Nothing while a write is pending that was requested earlier: it may be that of the stream, with a newer
        checkpoint. Streams look for the newest by requested time, and would find ours before that of the write. Raises
        CorruptFile and StorageError.
        """
        missing = {key for key in self.keys if not own.get(key)}
        found: dict[str, str] = {}
        if not missing:
            return found
        earlier = [one.ts for one in pending_writes(current) if one.ts < ts]
        if earlier:
            _log.info("%s takes over no extra metadata: the earlier write %s is pending", ts, earlier[0])
            return found
        writes = sorted(current.timeline.completed_writes(), key=lambda one: (one.completion_time or "", one.ts))
        for instant in islice(reversed(writes), self.lookback):
            extra = current.timeline.read_commit(instant).extra
            found |= {key: extra[key] for key in missing if extra.get(key)}
            missing -= found.keys()
            if not missing:
                break
        return found
