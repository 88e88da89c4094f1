"""What the footers tell of file slices, and how many rows these have, as plain values that tasks may send.

Whoever divides a group among tasks decides by the outlines of all its slices, which other tasks have opened. Protocols
say what an outline and an open slice (`slices`) have in common, so that one piece of code decides by either.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..calendars.calendar import FileCalendar
from ..parquet.file_schema import FileSchema
from .slices import SliceReader, StoredRowGroup

LeafPath = tuple[str, ...]
S = TypeVar("S")


class StoredSizes(Protocol):
    """The sizes, in bytes, of a row group that may be copied."""

    @property
    def rows(self) -> int: ...

    @property
    def compressed_bytes(self) -> int: ...

    @property
    def uncompressed_bytes(self) -> int: ...

    @property
    def encoded(self) -> Mapping[LeafPath, int]:
        """The uncompressed bytes of each leaf."""

    @property
    def codecs(self) -> frozenset[int]:
        """The codecs of its chunks, by their numbers in the footer."""

    @property
    def created_by(self) -> str:
        """The writer that the footer of its file names."""


class SegmentSizes(Protocol):
    """As `Segment`, without its rows."""

    @property
    def rows(self) -> int: ...

    @property
    def stored_bytes(self) -> int: ...

    @property
    def stored(self) -> StoredSizes | None: ...


Segments = TypeVar("Segments", bound=SegmentSizes, covariant=True)


class Segmented(Protocol[Segments]):
    """What is made of segments."""

    @property
    def segments(self) -> tuple[Segments, ...]: ...


class SliceForm(Protocol):
    """What the form of new files depends on, see `SliceReader`."""

    @property
    def path(self) -> str: ...

    @property
    def schema(self) -> FileSchema: ...

    @property
    def key_values(self) -> Mapping[str, str]: ...

    @property
    def calendar(self) -> FileCalendar: ...

    @property
    def dictionary_columns(self) -> frozenset[str]: ...

    @property
    def plain_leaves(self) -> frozenset[str]: ...

    def gregorian(self: S) -> S: ...


class SliceSizes(Protocol):
    """What decides whether a slice is copied, and into how many files, see `SliceReader`."""

    @property
    def schema(self) -> FileSchema: ...

    @property
    def is_converted(self) -> bool: ...

    @property
    def encoded_bytes(self) -> int: ...

    @property
    def overhead_bytes(self) -> int: ...

    @property
    def stored(self) -> Sequence[StoredSizes]: ...

    @property
    def segments(self) -> tuple[SegmentSizes, ...]: ...


@dataclass(frozen=True, slots=True)
class RowGroupOutline:
    """See `StoredSizes`. `paths`: those of the leaves; `sizes`: their uncompressed bytes."""

    rows: int
    compressed_bytes: int
    paths: tuple[LeafPath, ...]
    sizes: npt.NDArray[np.int64]
    codecs: frozenset[int]
    created_by: str

    @property
    def uncompressed_bytes(self) -> int:
        return int(self.sizes.sum())

    @property
    def encoded(self) -> dict[LeafPath, int]:
        return dict(zip(self.paths, self.sizes.tolist(), strict=True))

    @classmethod
    def of(cls, group: StoredRowGroup, paths: tuple[LeafPath, ...]) -> "RowGroupOutline":
        """The outline of a row group of a file with these leaves."""
        sizes = np.array([chunk.uncompressed_bytes for chunk in group.facts.columns], np.int64)
        return cls(group.rows, group.compressed_bytes, paths, sizes, group.codecs, group.created_by)


@dataclass(frozen=True, slots=True)
class SegmentOutline:
    """See `Segment`."""

    rows: int
    stored_bytes: int
    stored: RowGroupOutline | None


@dataclass(frozen=True, slots=True)
class SliceOutline:
    """See `SliceReader`. `is_stored`: whether all its rows are those of its row groups."""

    path: str
    schema: FileSchema
    key_values: Mapping[str, str]
    calendar: FileCalendar
    is_converted: bool
    dictionary_columns: frozenset[str]
    plain_leaves: frozenset[str]
    size: int
    encoded_bytes: int
    overhead_bytes: int
    num_rows: int
    is_stored: bool
    segments: tuple[SegmentOutline, ...]

    @classmethod
    def of(cls, reader: SliceReader) -> "SliceOutline":
        """The outline of an open slice, whose rows are merged for it if they must be. Raises as its properties."""
        paths = tuple(leaf.path for leaf in reader.schema.leaves)

        def outlined(stored: StoredRowGroup | None) -> RowGroupOutline | None:
            return None if stored is None else RowGroupOutline.of(stored, paths)

        return cls(
            path=reader.path,
            schema=reader.schema,
            # Most files of a group have the same texts; equal ones are sent once.
            key_values={key: sys.intern(value) for key, value in reader.key_values.items()},
            calendar=reader.calendar,
            is_converted=reader.is_converted,
            dictionary_columns=reader.dictionary_columns,
            plain_leaves=reader.plain_leaves,
            size=reader.size,
            encoded_bytes=reader.encoded_bytes,
            overhead_bytes=reader.overhead_bytes,
            num_rows=reader.num_rows,
            is_stored=bool(reader.stored),
            segments=tuple(SegmentOutline(s.rows, s.stored_bytes, outlined(s.stored)) for s in reader.segments),
        )

    @property
    def stored(self) -> tuple[RowGroupOutline, ...]:
        return tuple(one.stored for one in self.segments if one.stored is not None) if self.is_stored else ()

    def gregorian(self) -> "SliceOutline":
        """As `SliceReader.gregorian`."""
        if self.calendar.rebase() is None:
            return self
        segments = tuple(replace(one, stored=None) for one in self.segments)
        converted = self.calendar.converted()
        return replace(self, calendar=converted, is_converted=True, is_stored=False, segments=segments)
