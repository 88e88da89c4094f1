"""Hashes of the metadata table: for its keys, and for the file groups of the keys.

XXH64   seed 0xFFFFFFFFDABADABA (the int 0xdabadaba, sign-extended), 8 big-endian bytes, standard base64: 12 characters
MD5     16 bytes, standard base64: 24 characters
sharding   Java's String.hashCode over UTF-16 code units, |h| mod the number of file groups

Source: org.apache.hudi.common.util.hash.HashID (BITS_64, BITS_128) and
HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex. The keys are short, so XXH64 is written in Python.
"""

import base64
import functools
import hashlib
import struct

_SEED = 0xFFFFFFFFDABADABA
_M64 = 0xFFFFFFFFFFFFFFFF
_M32 = 0xFFFFFFFF
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5


# The same few column names and partitions are hashed once per file of a commit.
@functools.lru_cache(maxsize=4096)
def xxh64_key(text: str) -> str:
    """The 64-bit identifier of a column or partition: 12 characters of base64."""
    return base64.b64encode(struct.pack(">Q", _xxh64(text.encode(), _SEED))).decode()


def xxh64_hex(text: str) -> str:
    """The 64-bit identifier as 16 hexadecimal digits, as the names of locks have it (generateXXHashAsString)."""
    return f"{_xxh64(text.encode(), _SEED):016X}"


def md5_key(text: str) -> str:
    """The 128-bit identifier of a file name: 24 characters of base64."""
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode()`, a signed 32-bit number."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & _M32
    return value - (1 << 32) if value >= 1 << 31 else value


def file_group_index(key: str, count: int) -> int:
    """The position, in file-id order, of the file group that holds `key` among `count` file groups."""
    if count == 1:
        return 0
    # Java leaves |MIN_VALUE| negative and takes the absolute value again after the remainder: the same number.
    return abs(java_string_hash(key)) % count


def _xxh64(data: bytes, seed: int) -> int:
    length, at = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _M64, (seed + _P2) & _M64, seed, (seed - _P1) & _M64]
        while at + 32 <= length:
            lanes = [_round(a, w) for a, w in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        h = sum(_rotate(a, r) for a, r in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
        for lane in lanes:
            h = ((h ^ _round(0, lane)) * _P1 + _P4) & _M64
    else:
        h = (seed + _P5) & _M64
    return _avalanche(_tail(data, at, (h + length) & _M64))


def _tail(data: bytes, at: int, h: int) -> int:
    """Mix in the last `len(data) - at` (< 32) bytes."""
    while at + 8 <= len(data):
        h = (_rotate(h ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * _P1 + _P4) & _M64
        at += 8
    if at + 4 <= len(data):
        h ^= (struct.unpack_from("<I", data, at)[0] * _P1) & _M64
        h = (_rotate(h, 23) * _P2 + _P3) & _M64
        at += 4
    for byte in data[at:]:
        h = (_rotate(h ^ (byte * _P5) & _M64, 11) * _P1) & _M64
    return h


def _round(lane: int, word: int) -> int:
    return (_rotate((lane + word * _P2) & _M64, 31) * _P1) & _M64


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _M64


def _avalanche(h: int) -> int:
    h = ((h ^ (h >> 33)) * _P2) & _M64
    h = ((h ^ (h >> 29)) * _P3) & _M64
    return h ^ (h >> 32)
