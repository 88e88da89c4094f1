"""Conditional puts of object stores, whose outcome is known although an answer is lost.

A client that tries again by itself takes its own object for another's: the first try was stored, its answer was lost,
and the next try is told that the object exists. So a try here is one request, each object names the put that wrote it
(in its user metadata, which S3, Google Cloud Storage and Azure keep with the object), and after any other answer than
success the object is read back before anybody believes anything. S3 also answers 409 where another request for the key
is in progress: that is asked again, and is no lost race. Source: PutObject in the API reference of Amazon S3.
"""

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import obstore
from obstore import exceptions as obx

from ..request_counts import Asked, count
from ..storage import FileInfo
from .object_client import may_pass, pauses, tried

_WRITTEN_BY = "hudiserviceswrite"
"""The key of user metadata; Azure takes no hyphen in it."""


@dataclass(frozen=True, slots=True)
class ConditionalPut:
    """One conditional put. `once` is obstore's store that sends each request only once.

    `seen` is the object that it may replace; None where there must be none.
    """

    once: Any
    path: str
    data: bytes
    seen: FileInfo | None = None

    def carry_out(self) -> bool:
        """Whether the object is written; False when another one is there, or the one that was seen is not.

        Raises the errors of obstore; one that is raised after several tries leaves open whether the object is written.
        """
        own, unknown, further = str(uuid.uuid4()), False, pauses()
        while True:
            try:
                self._put(own)
                return True
            except (obx.AlreadyExistsError, obx.PreconditionError):
                found = self._is_own(own, tried(Asked.GET, self._read), unknown=unknown)
                if found is not None or next(further, further) is further:
                    return bool(found)
            except obx.GenericError as error:
                if not may_pass(error):
                    raise
                # A second answer that is lost is no accident: another try may find out no more than this one.
                if unknown and self._is_there(own):
                    return True
                unknown = True
                if next(further, further) is further:
                    raise
            count(Asked.RETRY)

    def _put(self, own: str) -> None:
        count(Asked.CONDITIONAL_PUT)
        obstore.put(
            self.once,
            self.path,
            self.data,
            mode="create" if self.seen is None else _version_of(self.seen),  # type: ignore[arg-type]
            attributes={_WRITTEN_BY: own},
            use_multipart=False,
        )

    def _is_there(self, own: str) -> bool:
        """Whether a look shows the object of the put `own`, which had no answer."""
        count(Asked.GET)
        with suppress(obx.GenericError):
            return self._is_own(own, self._read(), unknown=True) is True
        return False

    def _read(self) -> "tuple[obstore.GetResult, bytes] | None":
        """What is there, with its bytes where they may tell whose it is; None where nothing is."""
        try:
            found = obstore.get(self.once, self.path)
        except FileNotFoundError:
            return None
        is_alike = _WRITTEN_BY not in found.attributes and found.meta["size"] == len(self.data)
        return found, bytes(found.bytes()) if is_alike else b""

    def _is_own(self, own: str, there: "tuple[obstore.GetResult, bytes] | None", *, unknown: bool) -> bool | None:
        """Whether the object that is there is that of the put `own`; None when the put may be tried again.

        `unknown`: whether a try had no answer. Then equal bytes are ours, too, where the store keeps no metadata; no
        bytes say nothing about who wrote them.
        """
        if there is None:
            return None if self.seen is None else False
        found, data = there
        if found.attributes.get(_WRITTEN_BY) == own or (unknown and data and data == self.data):
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
