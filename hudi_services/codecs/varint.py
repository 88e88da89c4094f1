"""Base-128 varints, as Thrift's compact protocol, Protocol Buffers and parquet's RLE runs write them."""


def write_varint(out: bytearray, value: int) -> None:
    """Append a non-negative number."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def encode_varint(value: int) -> bytes:
    """The varint of a non-negative number."""
    out = bytearray()
    write_varint(out, value)
    return bytes(out)
