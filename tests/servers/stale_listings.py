"""Listings of S3 that are behind: they miss what was written in the last seconds, and still show what was deleted."""

import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from .proxy import Answer, Request

_HEAD = '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
_MADE = (200, 201, 204)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a listing says of an object; `modified` in epoch seconds."""

    size: int
    tag: str
    modified: float


@dataclass
class StaleListings:
    """A `changed` of a `BreakingProxy`, by which all changes of the bucket pass: it answers listings itself.

    This share of them, drawn by the seed, shows the bucket as it was `lag` seconds ago, and the others as it is.
    `shown` is how many differed from what is there.
    """

    lag: float
    share: float = 1.0
    seed: int = 0
    shown: int = 0
    _log: dict[str, list[tuple[float, Entry | None]]] = field(default_factory=dict)
    """The versions of each key, the newest last: when it came, and None for none."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.seed)

    def begin(self, objects: Iterable[tuple[str, Entry]]) -> None:
        """These are there, and have been for long."""
        self._log = {key: [(0.0, entry)] for key, entry in objects}

    def __call__(self, request: Request, answer: Answer) -> Answer:
        with self._lock:
            if request.method == "GET" and "list-type" in request.query:
                return self._listing(request) if answer.status == 200 else answer
            if answer.status in _MADE:
                self._note(request, answer)
        return answer

    def _note(self, request: Request, answer: Answer) -> None:
        bucket, _, key = request.path.partition("/")
        query = request.query
        if request.method == "PUT" and "partNumber" not in query:
            self._put(key, self._written(request, answer, bucket))
        elif request.method == "DELETE" and "uploadId" not in query:
            self._put(key, None)
        elif "delete" in query:
            for one in ElementTree.fromstring(request.body).iter():
                if one.tag.rpartition("}")[2] == "Key":
                    self._put(one.text or "", None)

    def _written(self, request: Request, answer: Answer, bucket: str) -> Entry:
        source = request.header("x-amz-copy-source")
        tag = next((value for name, value in answer.headers if name.lower() == "etag"), "")
        size = len(request.body)
        if source is not None:
            copied = self._log[source.lstrip("/").removeprefix(f"{bucket}/")][-1][1]
            assert copied is not None, source
            size, tag = copied.size, copied.tag
        return Entry(size, tag, time.time())

    def _put(self, key: str, entry: Entry | None) -> None:
        self._log.setdefault(key, []).append((time.monotonic(), entry))

    def _listing(self, request: Request) -> Answer:
        query, bucket = request.query, request.path.partition("/")[0]
        is_stale = self._drawn.random() < self.share
        now = self._at(time.monotonic(), query)
        told = self._at(time.monotonic() - self.lag, query) if is_stale else now
        self.shown += told != now
        contents, folders = told
        lines = [_HEAD, f"<Name>{bucket}</Name><KeyCount>{len(contents) + len(folders)}</KeyCount>"]
        lines.append("<IsTruncated>false</IsTruncated>")
        for key, entry in contents.items():
            moment = datetime.fromtimestamp(entry.modified, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
            lines.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{moment}Z</LastModified><ETag>{escape(entry.tag)}</ETag>"
                f"<Size>{entry.size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        lines += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders]
        lines.append("</ListBucketResult>")
        return Answer(200, (("Content-Type", "application/xml"),), "".join(lines).encode())

    def _at(self, moment: float, query: dict[str, str]) -> tuple[dict[str, Entry], list[str]]:
        """The objects and the folders that a listing has at a moment."""
        prefix, delimiter, after = query.get("prefix", ""), query.get("delimiter", ""), query.get("start-after", "")
        contents: dict[str, Entry] = {}
        folders: dict[str, None] = {}
        for key in sorted(self._log, key=str.encode):
            entry = next((one for began, one in reversed(self._log[key]) if began <= moment), None)
            if entry is None or not key.startswith(prefix) or key <= after:
                continue
            inner, found, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
            if found:
                folders[f"{prefix}{inner}{delimiter}"] = None
            else:
                contents[key] = entry
        return contents, list(folders)
