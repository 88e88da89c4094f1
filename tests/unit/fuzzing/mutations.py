"""Damage to the bytes of a file, whatever they mean: what disks, transfers and killed writers do, and worse."""

from collections.abc import Callable
from random import Random

_LENGTHS = (1, 2, 8, 64, 512)
_NUMBERS = (
    b"\xff" * 9 + b"\x01",  # varints: -1, and the largest
    b"\xfe" * 4 + b"\x0f",
    b"\x7f\xff\xff\xff",  # 32 bits: the largest, the smallest
    b"\x80\x00\x00\x00",
    b"\x7f" + b"\xff" * 7,
    b"\x80" + b"\x00" * 7,
)
_SEPARATORS = (b"/../", b"//", b"\\", b"\x00", b"%2f", b"\n")


def damage(chance: Random, data: bytes) -> tuple[str, bytes]:
    """What was done, in words, and the bytes after it; they may be the same."""
    if not data:
        return "random bytes", chance.randbytes(chance.choice((1, 30, 300)))
    kind = chance.choice(_KINDS)
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice(_LENGTHS))
    return f"{kind.__name__.strip('_')} {start}:{end}", kind(chance, data, start, end)


def _flip(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes([data[start] ^ 1 << chance.randrange(8)]) + data[start + 1 :]


def _flip_many(chance: Random, data: bytes, start: int, end: int) -> bytes:
    for _ in range(8):
        data = _flip(chance, data, chance.randrange(len(data)), 0)
    return data


def _cut(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start]


def _cut_a_little(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[: max(0, len(data) - (end - start))]


def _empty(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return b""


def _zero(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes(end - start) + data[end:]


def _zero_all(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return bytes(len(data))


def _overwrite(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + chance.randbytes(end - start) + data[end:]


def _remove(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + data[end:]


def _repeat(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:end] + data[start:]


def _splice(chance: Random, data: bytes, start: int, end: int) -> bytes:
    """Other bytes of the same file, as of another place of it."""
    source = chance.randrange(len(data))
    return data[:start] + data[source : source + end - start] + data[end:]


def _insert(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + chance.randbytes(end - start) + data[start:]


def _append(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data + chance.randbytes(end - start)


def _twice(chance: Random, data: bytes, start: int, end: int) -> bytes:
    return data + data


def _number(chance: Random, data: bytes, start: int, end: int) -> bytes:
    number = chance.choice(_NUMBERS)
    return data[:start] + number + data[start + len(number) :]


def _digit(chance: Random, data: bytes, start: int, end: int) -> bytes:
    places = [at for at, byte in enumerate(data) if 0x30 <= byte <= 0x39]
    at = chance.choice(places) if places else start
    return data[:at] + b"%d" % chance.randrange(10) + data[at + 1 :]


def _separator(chance: Random, data: bytes, start: int, end: int) -> bytes:
    at = data.find(b"/", start)
    return data if at < 0 else data[:at] + chance.choice(_SEPARATORS) + data[at + 1 :]


_KINDS: tuple[Callable[[Random, bytes, int, int], bytes], ...] = (
    _flip,
    _flip_many,
    _cut,
    _cut_a_little,
    _empty,
    _zero,
    _zero_all,
    _overwrite,
    _remove,
    _repeat,
    _splice,
    _insert,
    _append,
    _twice,
    _number,
    _digit,
    _separator,
)
