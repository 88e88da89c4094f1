"""The check that converted columns keep the meaning of what was read, without any code of `parquet.conversion`.

Columns that need no conversion are hashed as they were read. The others are compared before and after, a leaf at a
time:

    int, long to long, float, double   the numbers of numpy, bit by bit
    int, long to string                numpy's text of the number
    float to double                    the double of the shortest text that numpy gives a float
    string, bytes, enum                the bytes
    decimals of any form               the unscaled numbers modulo 2^64 and modulo 2^31 - 1
    times, timestamps, INT96           the new number, divided by the ratio of the units, is the old one, with no rest
    lists, maps, structs               nulls and lengths, then the parts; new fields are null

The type of a leaf is the one that pyarrow reads from the schema elements.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs import thrift
from ..codecs.thrift import Struct
from ..errors import REPORT_IT, CheckFailed
from ..parquet.file_schema import (
    OPTIONAL,
    REPEATED,
    REQUIRED,
    ColumnMap,
    FileSchema,
    Node,
    arrow_schema,
    node,
)
from ..parquet.footer import Physical
from ..parquet.node_types import list_item

_NAME, _REPETITION, _FIELD_ID = 4, 3, 9
"""Fields of a SchemaElement that do not affect the meaning of the values; see `_meaning` for the repetition."""
_INT96_EPOCH_DAY = 2_440_588
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NANOS_PER_DAY = 86_400 * 10**9
_PRIME = 2**31 - 1

Numbers = npt.NDArray[np.int64]


class ConversionCheck:
    """The check of columns of the file at `path` when they are converted from the schema `source` to `target`.

    `columns`: those of the target, each with its column in the file.
    """

    def __init__(self, path: str, source: FileSchema, target: FileSchema, columns: ColumnMap) -> None:
        self._path = path
        self._columns = columns
        self._changed: dict[str, tuple[Node | None, Node]] = {}
        if source == target:
            return
        for name, stored in columns.items():
            old, new = None if stored is None else source.column(stored), target.column(name)
            assert new is not None, "only columns of the target are read"
            if old is None or not _same_form(old, new):
                self._changed[name] = old, new

    def rows(self, read: pa.Table, converted: pa.Table) -> pa.Table:
        """The rows to hash: columns as they were read, and the converted form of columns that needed a conversion.

        Raises CheckFailed when a conversion has changed the meaning of a value, or lost rows.
        """
        for name, (old, new) in self._changed.items():
            after = converted.column(name)
            if not (after.null_count == len(after) if old is None else _same(read.column(old.name), old, after, new)):
                raise CheckFailed(
                    f"{self._path}: the values of column {name} were changed by their conversion to the type that the "
                    "table has",
                    hint=REPORT_IT,
                )
        columns = [
            converted.column(name) if name in self._changed else read.column(stored)
            for name, stored in self._columns.items()
        ]
        if any(len(column) != converted.num_rows for column in columns):
            raise CheckFailed(f"{self._path}: a conversion has lost rows")
        return pa.table(columns, names=list(self._columns))


def _same_form(source: Node, target: Node) -> bool:
    """Whether raw values of both mean the same: their schema elements are equal, apart from ids and nullability."""
    if _meaning(source) != _meaning(target) or len(source.children) != len(target.children):
        return False
    pairs = zip(source.children, target.children, strict=True)
    return all(old.name == new.name and _same_form(old, new) for old, new in pairs)


def _meaning(at: Node) -> bytes:
    kept = {k: v for k, v in at.element.fields.items() if k not in (_NAME, _REPETITION, _FIELD_ID)}
    kept[_REPETITION] = (thrift.I32, REPEATED if at.repetition == REPEATED else OPTIONAL)
    return thrift.encode_struct(Struct(dict(sorted(kept.items()))))


def _same(before: pa.ChunkedArray, source: Node, after: pa.ChunkedArray, target: Node) -> bool:
    """Whether a column in the raw form of `source` means the same as a column in the raw form of `target`."""
    if len(before) != len(after):
        return False
    if pa.types.is_dictionary(before.type):
        before = before.cast(before.type.value_type)
    return _same_values(_one(before), source, _one(after), target)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _same_values(before: pa.Array, source: Node, after: pa.Array, target: Node) -> bool:
    if not before.is_null().equals(after.is_null()):
        return False
    # The value behind a null is arbitrary.
    before, after = before.drop_null(), after.drop_null()
    items = list_item(source), list_item(target)
    entries = source.map_entry, target.map_entry
    if items[0] is not None and items[1] is not None:
        pairs = [(before.values, items[0], after.values, items[1])]
        return _same_elements(before, after, pairs)
    if source.is_group is not target.is_group:
        return False
    if not target.is_group:
        return _same_leaf(before, source, after, target)
    if entries[0] is not None and entries[1] is not None:
        olds, news = (before.keys, before.items), (after.keys, after.items)
        return _same_elements(before, after, list(zip(olds, entries[0], news, entries[1], strict=True)))
    return _same_fields(before, source, after, target)


def _same_elements(before: pa.Array, after: pa.Array, parts: Sequence[tuple[pa.Array, Node, pa.Array, Node]]) -> bool:
    old, new = (array.offsets.to_numpy() for array in (before, after))
    if not np.array_equal(np.diff(old), np.diff(new)):
        return False
    count = int(old[-1] - old[0]) if len(old) else 0
    return all(
        _same_values(one.slice(int(old[0]), count), source, other.slice(int(new[0]), count), target)
        for one, source, other, target in parts
    )


def _same_fields(before: pa.StructArray, source: Node, after: pa.StructArray, target: Node) -> bool:
    olds = {child.name: (before.field(at), child) for at, child in enumerate(source.children)}
    for at, child in enumerate(target.children):
        new = after.field(at)
        if child.name in olds:
            if not _same_values(*olds[child.name], new, child):
                return False
        elif new.null_count < len(new):
            return False
    return True


# ------------------------------------------------------------------------------------------------------------- leaves


def _same_leaf(before: pa.Array, source: Node, after: pa.Array, target: Node) -> bool:
    """As `_same_values`, for leaves without nulls. Raises CheckFailed for types between which no conversion exists."""
    if not len(before):
        return True
    old, new = _logical(source), _logical(target)
    for is_one, is_other, same in _PAIRS:
        if is_one(old) and is_other(new):
            return same(before, source, after, target)
    if before.type == after.type and old == new:
        return bool(before.equals(after))
    raise CheckFailed(f"column {target.name} was converted from {old} to {new}, which cannot be checked")


def _logical(leaf: Node) -> pa.DataType:
    """The type that pyarrow sees in the schema element of the leaf."""
    found = arrow_schema(FileSchema(node("root", REQUIRED, children=[leaf.with_repetition(OPTIONAL)]))).field(0).type
    return found.storage_type if isinstance(found, pa.BaseExtensionType) else found


def _numbers(array: pa.Array) -> "npt.NDArray[np.generic]":
    found: npt.NDArray[np.generic] = array.to_numpy(zero_copy_only=False)
    return found


def _bits_equal(before: "npt.NDArray[np.generic]", after: "npt.NDArray[np.generic]") -> bool:
    """Whether all bits are equal; any NaN equals any other NaN, and -0.0 does not equal 0.0."""
    kind = f"u{after.dtype.itemsize}"
    return bool(np.all((before.view(kind) == after.view(kind)) | ((before != before) & (after != after))))


def _same_integers(before: pa.Array, _: Node, after: pa.Array, __: Node) -> bool:
    return np.array_equal(_numbers(before).astype(np.int64), _numbers(after).astype(np.int64))


def _same_floats(before: pa.Array, _: Node, after: pa.Array, __: Node) -> bool:
    found = _numbers(after)
    return _bits_equal(_numbers(before).astype(found.dtype), found)


def _same_as_text(before: pa.Array, _: Node, after: pa.Array, __: Node) -> bool:
    return bool(pa.array(_numbers(before).astype("S20"), pa.binary()).equals(after.cast(pa.binary())))


def _same_by_text(before: pa.Array, _: Node, after: pa.Array, __: Node) -> bool:
    texts = _numbers(before).astype("S32")
    return _bits_equal(texts.astype(np.float64), _numbers(after))


def _same_bytes(before: pa.Array, _: Node, after: pa.Array, __: Node) -> bool:
    return bool(before.cast(pa.binary()).equals(after.cast(pa.binary())))


def _same_decimals(before: pa.Array, source: Node, after: pa.Array, target: Node) -> bool:
    shift = 10 ** (_logical(target).scale - _logical(source).scale)
    for modulus in (2**64, _PRIME):
        factor = np.uint64(shift % modulus)
        olds, news = (_residues(array, modulus) for array in (before, after))
        if not np.array_equal(_reduced(olds * factor, modulus), news):
            return False
    return True


def _residues(array: pa.Array, modulus: int) -> "npt.NDArray[np.uint64]":
    """The unscaled numbers of raw decimals without nulls, modulo 2^64 or the prime."""
    if pa.types.is_integer(array.type):
        numbers = _numbers(array).astype(np.int64)
        return (numbers if modulus == 2**64 else numbers % modulus).astype(np.uint64)
    if pa.types.is_decimal(array.type):
        width = array.type.byte_width
        # Arrow stores decimals with the lowest byte first.
        digits = _matrix(array, width)[:, ::-1]
    elif pa.types.is_fixed_size_binary(array.type):
        digits = _matrix(array, array.type.byte_width)
    else:
        return _residues_of_texts(array, modulus)
    found = np.zeros(len(array), np.uint64)
    for column in digits.T:
        found = _reduced(found * np.uint64(256) + column, modulus)
    return _signed(found, digits[:, 0] >= 0x80, np.full(len(array), digits.shape[1]), modulus)


def _matrix(array: pa.Array, width: int) -> "npt.NDArray[np.uint8]":
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width].reshape(len(array), width)


def _residues_of_texts(array: pa.Array, modulus: int) -> "npt.NDArray[np.uint64]":
    lengths = pc.binary_length(array).to_numpy().astype(np.int64)
    data = np.frombuffer(b"".join(array.to_pylist()), np.uint8)
    starts = np.cumsum(lengths) - lengths
    found = np.zeros(len(array), np.uint64)
    for at in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > at)
        found[rows] = _reduced(found[rows] * np.uint64(256) + data[starts[rows] + at], modulus)
    first = np.zeros(len(array), np.uint8)
    first[lengths > 0] = data[starts[lengths > 0]]
    return _signed(found, first >= 0x80, lengths, modulus)


def _signed(
    values: "npt.NDArray[np.uint64]", negative: "npt.NDArray[np.bool_]", lengths: Numbers, modulus: int
) -> "npt.NDArray[np.uint64]":
    """`values`, corrected for two's complement: a negative number of n bytes was read as 2^(8n) too much."""
    for length in np.unique(lengths[negative]).tolist():
        rows = negative & (lengths == length)
        values[rows] = _reduced(values[rows] + np.uint64(-(1 << (8 * length)) % modulus), modulus)
    return values


def _reduced(values: "npt.NDArray[np.uint64]", modulus: int) -> "npt.NDArray[np.uint64]":
    # The arithmetic of numpy is modulo 2^64 already.
    return values if modulus == 2**64 else values % np.uint64(modulus)


def _same_times(before: pa.Array, source: Node, after: pa.Array, target: Node) -> bool:
    (olds, old_unit), (news, new_unit) = _ticks(before, source), _ticks(after, target)
    factor, rest = divmod(old_unit, new_unit)
    if rest or not _same_zone(source, target):
        return False
    return bool(np.all(news // factor == olds) and np.all(news % factor == 0))


def _ticks(array: pa.Array, leaf: Node) -> tuple[Numbers, int]:
    """Times as numbers, and the unit of these numbers in nanoseconds."""
    if leaf.physical is Physical.INT96:
        parts = np.frombuffer(_matrix(array, 12).tobytes(), np.dtype([("nanos", "<i8"), ("day", "<i4")]))
        # Readers use microseconds: nanoseconds of the year 1 do not fit into 64 bits.
        days = (parts["day"].astype(np.int64) - _INT96_EPOCH_DAY) * (_NANOS_PER_DAY // 1000)
        return days + parts["nanos"] // 1000, 1000
    kind = _logical(leaf)
    bare = pa.int32() if kind.bit_width == 32 else pa.int64()
    return _numbers(array.cast(bare)).astype(np.int64), _NANOS[kind.unit]


def _same_zone(source: Node, target: Node) -> bool:
    """Whether both are points in time, as INT96 always is, or both are local times without a zone."""
    zones = [
        leaf.physical is Physical.INT96 or getattr(_logical(leaf), "tz", None) is not None for leaf in (source, target)
    ]
    return zones[0] == zones[1]


_Is = Callable[[pa.DataType], bool]
_SameLeaf = Callable[[pa.Array, Node, pa.Array, Node], bool]


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_fixed_size_binary(kind))


def _is_clock(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind))


_PAIRS: Sequence[tuple[_Is, _Is, _SameLeaf]] = (
    (pa.types.is_integer, pa.types.is_integer, _same_integers),
    (pa.types.is_integer, pa.types.is_floating, _same_floats),
    (pa.types.is_integer, pa.types.is_string, _same_as_text),
    (pa.types.is_float32, pa.types.is_float64, _same_by_text),
    (pa.types.is_floating, pa.types.is_floating, _same_floats),
    (_is_bytes, _is_bytes, _same_bytes),
    (pa.types.is_decimal, pa.types.is_decimal, _same_decimals),
    (_is_clock, _is_clock, _same_times),
)
