"""The check of Avro schemas before they are used: a reader must not loop, recurse or take much memory for few bytes.

Every value but null takes at least one byte: an empty fixed and a record of nothing but nulls are refused, and so are
arrays of null. So a reader that is told of 2^40 items reaches the end of the data first. The nesting of types, names
resolved, is limited, since fastavro follows it by recursion in C; and one byte opens two records at most, since a
record takes 200 bytes of memory. Hudi's own schemas are far below these limits (`tests/unit/test_avro.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_SCHEMA = 256 << 10
"""Characters of a schema, at most; the longest schema of Hudi has 20,000."""

_DEEPEST_JSON = 256
_DEEPEST_TYPE = 64
_RECORDS_PER_BYTE = 2

_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class _Shape:
    """The bytes and the records of the shortest value of a type, and the nesting depth of the type."""

    least_bytes: int
    records: int = 0
    depth: int = 0


_NULL = _Shape(0)
_ONE_BYTE = _Shape(1)


def check_json_depth(tree: Any, depth: int = 0) -> None:
    """Raise ValueError for JSON that is nested deeper than any schema."""
    if depth > _DEEPEST_JSON:
        raise ValueError(f"it is nested more than {_DEEPEST_JSON} deep")
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        check_json_depth(part, depth + 1)


def check_types(tree: Any) -> None:
    """Raise ValueError for a schema that breaks a rule; `tree` is as fastavro parses it, with full names."""
    _Types().shape(tree)


class _Types:
    def __init__(self) -> None:
        # None: a record whose fields are still being checked.
        self.named: dict[str, _Shape | None] = {}

    def shape(self, tree: Any) -> _Shape:
        found = self._shape(tree)
        if found.depth > _DEEPEST_TYPE:
            raise ValueError(f"its types are nested more than {_DEEPEST_TYPE} deep")
        return found

    def _shape(self, tree: Any) -> _Shape:
        if isinstance(tree, list):
            # The index of the branch is a byte of its own, and an empty branch may always be chosen.
            return _Shape(1, 0, 1 + max((self.shape(branch).depth for branch in tree), default=0))
        if isinstance(tree, str):
            return self._by_name(tree)
        kind = tree["type"]
        if kind in ("record", "error"):
            return self._record(tree)
        if kind == "array":
            items = self.shape(tree["items"])
            if not items.least_bytes:
                raise ValueError("an array of values without bytes")
            return _Shape(1, 0, 1 + items.depth)
        if kind == "map":
            return _Shape(1, 0, 1 + self.shape(tree["values"]).depth)
        if kind == "fixed":
            return self._name(tree, self._fixed(tree["size"]))
        if kind == "enum":
            return self._name(tree, _ONE_BYTE)
        return self._by_name(kind)

    def _by_name(self, name: Any) -> _Shape:
        if name == "null":
            return _NULL
        if name in _PRIMITIVES:
            return _ONE_BYTE
        if name not in self.named:
            raise ValueError(f"the unknown type {name!r:.80}")
        found = self.named[name]
        if found is None:
            raise ValueError(f"{name} contains itself")
        return found

    def _name(self, tree: Mapping[str, Any], shape: _Shape) -> _Shape:
        self.named[tree["name"]] = shape
        return shape

    def _fixed(self, size: Any) -> _Shape:
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            raise ValueError(f"a fixed of {size!r:.80} bytes")
        return _Shape(size)

    def _record(self, tree: Mapping[str, Any]) -> _Shape:
        self.named[tree["name"]] = None
        fields = [self.shape(field["type"]) for field in tree["fields"]]
        found = _Shape(
            sum(field.least_bytes for field in fields),
            1 + sum(field.records for field in fields),
            1 + max((field.depth for field in fields), default=0),
        )
        if not found.least_bytes:
            raise ValueError("a record without bytes")
        if found.records > _RECORDS_PER_BYTE * found.least_bytes:
            raise ValueError(f"{found.records} records in {found.least_bytes} bytes")
        return self._name(tree, found)
