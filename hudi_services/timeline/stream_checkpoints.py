"""Checkpoints of streams: how far a streaming writer has read its source, in the extra metadata of its commits.

A stream that starts again looks for its newest checkpoint on the active timeline, never in the archive. Without one it
reads its source from the beginning, or from its end, and a batch that is replayed is written a second time.

    who reads                keys                                  where it looks for the newest one
    Spark's streaming sink   _hudi_streaming_sink_checkpoint       all completed writes; one for each query
    HoodieStreamer           deltastreamer.checkpoint.key,         the delta commits, where there are any; else all
                             streamer.checkpoint.key.v2, and       completed writes
                             the two keys of a reset
    Kafka Connect's sink     kafka.commit.offsets                  the delta commits, where there are any; else commits

Source: CommitUtils.getValidCheckpointForCurrentWriter (sink), StreamerCheckpointUtils and HoodieStreamer,
KafkaConnectUtils.getCommitMetadataForLatestInstant of Apache Hudi 0.15.0 to 1.2.0.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..concurrency import at_once
from .active import Timeline
from .instant import Action, Instant

SINK = "_hudi_streaming_sink_checkpoint"
STREAMER = (
    "deltastreamer.checkpoint.key",
    "deltastreamer.checkpoint.reset_key",
    "streamer.checkpoint.key.v2",
    "streamer.checkpoint.reset.key.v2",
)
KAFKA_CONNECT = "kafka.commit.offsets"
_KEYS = tuple(key.encode() for key in (SINK, *STREAMER, KAFKA_CONNECT))


@dataclass(frozen=True, slots=True)
class Stream:
    """Who reads a checkpoint, in words; `key` is the one under which it was found."""

    reader: str
    key: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The completed write that has the newest checkpoint of a stream."""

    write: Instant
    stream: Stream
    behind: int
    """How many completed writes are newer."""


def last_checkpoint(timeline: Timeline, going: Sequence[Instant], named: Collection[str]) -> LastCheckpoint | None:
    """The first of the completed writes `going` whose checkpoint no write has that stays; None without one.

    `named` are more keys that somebody reads, in all completed writes. Raises CorruptFile and StorageError.
    """
    last: dict[Stream, Instant] = {}
    contents = at_once(lambda one: _streams(timeline, one, named), going)
    for write, streams in sorted(zip(going, contents, strict=True), key=lambda pair: pair[0].order):
        for stream in streams:
            last.pop(stream, None)
            last[stream] = write
    leaving = set(going)
    writes = timeline.completed_writes()
    for write in reversed(writes):
        if not last:
            break
        if write not in leaving:
            for stream in _streams(timeline, write, named):
                last.pop(stream, None)
    if not last:
        return None
    stream, first = min(last.items(), key=lambda pair: pair[1].order)
    return LastCheckpoint(first, stream, sum(one.order > first.order for one in writes))


def names_checkpoint(commit: bytes) -> bool:
    """Whether the content of a commit, as JSON or Avro, has a key of a checkpoint."""
    return any(key in commit for key in _KEYS)


def _streams(timeline: Timeline, write: Instant, named: Collection[str]) -> list[Stream]:
    """The streams that find a checkpoint of theirs in `write`."""
    if not timeline.sizes[write.file_name]:
        return []
    extra = timeline.read_commit(write).extra
    found = [Stream(key, key) for key in named if extra.get(key)]
    if extra.get(SINK):
        found += [Stream(f"Spark's streaming query {name}", SINK) for name in _queries(extra[SINK])]
    has_deltas = bool(timeline.completed({Action.DELTA_COMMIT}))
    is_delta = write.action is Action.DELTA_COMMIT
    if any(map(extra.get, STREAMER)) and (is_delta or not has_deltas):
        found.append(Stream("Hudi Streamer", next(key for key in STREAMER if extra.get(key))))
    if extra.get(KAFKA_CONNECT) and (is_delta if has_deltas else write.action is Action.COMMIT):
        found.append(Stream("Kafka Connect's sink", KAFKA_CONNECT))
    return found


def _queries(checkpoint: str) -> list[str]:
    """The queries of a checkpoint of Spark's sink, which is a JSON object of batch numbers by query."""
    try:
        batches = json.loads(checkpoint)
    except ValueError:
        batches = None
    return list(batches) if isinstance(batches, dict) else [""]
