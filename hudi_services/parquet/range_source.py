"""The bytes of a file for pyarrow: its many small reads become few large reads from storage."""

import io
from collections.abc import Sequence

from ..small_files import FileRanges
from .page_checks import ChunkWalk

# Below this gap one request for two ranges costs less than two requests.
_GAP = 1 << 20


class RangeSource(io.RawIOBase):
    """A file for pyarrow that serves loaded ranges from memory and any other byte by a request of its own."""

    def __init__(self, ranges: FileRanges) -> None:
        super().__init__()
        self._ranges = ranges
        self._size = ranges.size
        self._position = 0
        self._blocks: list[tuple[int, memoryview]] = []
        self.holds = False
        """While True, loaded ranges stay, and no others are loaded."""
        self.walks: Sequence[ChunkWalk] = ()
        """The checks that get all bytes that `read` returns."""

    def load(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch sorted (start, end) ranges; ranges with a small gap are read together."""
        if self.holds:
            return
        merged: list[list[int]] = []
        for start, end in ranges:
            if merged and start - merged[-1][1] <= _GAP:
                merged[-1][1] = max(end, merged[-1][1])
            else:
                merged.append([start, end])
        self._blocks = [(start, memoryview(self._ranges(start, end - start))) for start, end in merged]

    def forget(self) -> None:
        self.walks = ()
        if not self.holds:
            self._blocks = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes | memoryview:
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        start = self._position
        self._position += length
        data = self.read_at(start, length)
        for walk in self.walks:
            walk.feed(start, data)
        return data

    def read_at(self, start: int, length: int) -> bytes | memoryview:
        for block_start, block in self._blocks:
            if block_start <= start and start + length <= block_start + len(block):
                return block[start - block_start : start - block_start + length]
        return self._ranges(start, length)
