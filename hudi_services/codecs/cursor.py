"""A bounds-checked reading position in bytes, for formats whose lengths cannot be trusted."""

import struct
from typing import NoReturn

from ..errors import CorruptFile

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Cursor:
    """Reads big-endian numbers, varints and slices of `data`, which starts at offset `base` of the file `path`.

    Every read that would leave the data raises CorruptFile, and nothing is allocated before that check.
    """

    __slots__ = ("base", "data", "path", "pos")

    def __init__(self, data: bytes, path: str, *, base: int = 0, pos: int = 0) -> None:
        self.data = data
        self.path = path
        self.base = base
        self.pos = pos

    @property
    def remaining(self) -> int:
        return len(self.data) - self.pos

    def fail(self, problem: str) -> NoReturn:
        """Raise CorruptFile for the current position."""
        raise CorruptFile(f"{self.path} is corrupt at offset {self.base + self.pos}: {problem}")

    def take(self, length: int, what: str) -> bytes:
        start = self.pos
        end = start + length
        if length < 0 or end > len(self.data):
            self.fail(f"{what} of {length} bytes, and {self.remaining} are left")
        self.pos = end
        return self.data[start:end]

    def nested(self, length: int, what: str) -> "Cursor":
        """A cursor over the next `length` bytes, which this cursor skips."""
        base = self.base + self.pos
        return Cursor(self.take(length, what), self.path, base=base)

    def int16(self, what: str) -> int:
        return int.from_bytes(self.take(2, what), "big", signed=True)

    def int32(self, what: str) -> int:
        return int(_INT32.unpack(self.take(4, what))[0])

    def int64(self, what: str) -> int:
        return int(_INT64.unpack(self.take(8, what))[0])

    def varint(self, what: str) -> int:
        """A base-128 varint of at most 64 bits, as Protocol Buffers writes it (unsigned)."""
        value, start = 0, self.pos
        # Most numbers have one byte.
        if 0 <= start < len(self.data) and (only := self.data[start]) < 0x80:
            self.pos = start + 1
            return only
        for shift in range(0, 70, 7):
            byte = self.take(1, what)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
        self.fail(f"{what} does not end")

    def zigzag(self, what: str) -> int:
        """An Avro int or long."""
        start = self.pos
        # As in `varint`, without the call: this is where the time goes.
        if 0 <= start < len(self.data) and (only := self.data[start]) < 0x80:
            self.pos = start + 1
            return (only >> 1) ^ -(only & 1)
        value = self.varint(what)
        return (value >> 1) ^ -(value & 1)

    def hadoop_vint(self, what: str) -> int:
        """A non-negative number as Hadoop's WritableUtils.writeVInt writes it."""
        first = int.from_bytes(self.take(1, what), "big", signed=True)
        if first >= 0:
            return first
        if not -116 <= first <= -113:
            self.fail(f"{what} is not a non-negative VInt")
        return int.from_bytes(self.take(-112 - first, what), "big")
