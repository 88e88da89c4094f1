"""Conditional puts of object stores, whose outcome is known although an answer is lost.

A client that tries again by itself takes its own object for another's: the first try was stored, its answer was lost,
and the next try is told that the object exists. So a try here is one request, each object names the put that wrote it
(in its user metadata, which S3, Google Cloud Storage and Azure keep with the object), and after any other answer than
success the object is read back before anybody believes anything. S3 also answers 409 where another request for the key
is in progress: that is asked again, and is no lost race. Source: PutObject in the API reference of Amazon S3.
"""

import random
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

import obstore
from obstore import exceptions as obx

from ..storage import FileInfo

_WRITTEN_BY = "hudiserviceswrite"
"""The key of user metadata; Azure takes no hyphen in it."""
_TRIES = 11
_SECONDS = 120.0
"""No try begins later than this after the first one: the client itself ends a request after 30 s."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_MAY_PASS = re.compile(r"HTTP error|status code: (5\d\d|408|429)")
"""What the client says of requests that another try may mend, and that may have been carried out all the same."""


@dataclass(frozen=True, slots=True)
class ConditionalPut:
    """One conditional put. `once` and `store` are obstore's stores of one place: `once` sends each request only once.

    `seen` is the object that it may replace; None where there must be none.
    """

    once: Any
    store: Any
    path: str
    data: bytes
    seen: FileInfo | None = None

    def carry_out(self) -> bool:
        """Whether the object is written; False when another one is there, or the one that was seen is not.

        Raises the errors of obstore; one that is raised after several tries leaves open whether the object is written.
        """
        own, seen = str(uuid.uuid4()), self.seen
        mode: Any = "create" if seen is None else _version_of(seen)
        began, unknown = time.monotonic(), False
        for number in range(_TRIES):
            try:
                obstore.put(
                    self.once,
                    self.path,
                    self.data,
                    mode=mode,
                    attributes={_WRITTEN_BY: own},
                    use_multipart=False,
                )
                return True
            except (obx.AlreadyExistsError, obx.PreconditionError):
                found = self._written(own, unknown=unknown)
                if found is not None:
                    return found
            except obx.GenericError as error:
                if not _MAY_PASS.search(str(error)):
                    raise
                unknown = True
                if number + 1 == _TRIES or time.monotonic() - began > _SECONDS:
                    if self._written(own, unknown=True):
                        return True
                    raise
            time.sleep(random.uniform(0.5, 1) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number))
        return False

    def _written(self, own: str, *, unknown: bool) -> bool | None:
        """Whether the object that is there is that of the put `own`; None when the put may be tried again.

        `unknown`: whether a try had no answer. Then equal bytes are ours, too, where the store keeps no metadata; no
        bytes say nothing about who wrote them.
        """
        try:
            found = obstore.get(self.store, self.path)
        except FileNotFoundError:
            return None if self.seen is None else False
        if found.attributes.get(_WRITTEN_BY) == own:
            return True
        may_be_ours = unknown and self.data and _WRITTEN_BY not in found.attributes
        if may_be_ours and found.meta["size"] == len(self.data) and bytes(found.bytes()) == self.data:
            return True
        return None if self.seen is not None and _is_still(self.seen, found.meta) else False


def tag_of(meta: Any) -> str:
    """The ETag of an object, in quotes: the listings of Azure and Google leave them out, and no other answer does."""
    tag = meta["e_tag"] or ""
    return f'"{tag}"' if tag and not tag.endswith('"') else tag


def _version_of(seen: FileInfo) -> dict[str, str]:
    return {"e_tag": seen.tag, **({"version": seen.version} if seen.version else {})}


def _is_still(seen: FileInfo, now: Any) -> bool:
    """Whether an object is the one that was seen; what was seen in a listing may have no version."""
    return bool(seen.tag == tag_of(now) and (not seen.version or seen.version == now["version"]))
