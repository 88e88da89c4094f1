"""WHERE clauses in the SQL of Spark, as conditions on files. sqlglot parses them: the extra `advise`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..computed_once import cached_property
from ..errors import ConfigError
from ..extras import imported
from ..schema.column_type import ColumnType, Kind
from .column_values import Notation, compared_value, is_comparable, literal_value
from .predicates import (
    COMPARISONS,
    FALSE,
    MIRRORED,
    TRUE,
    AllOf,
    AnyOf,
    Condition,
    Exists,
    Test,
    Unknown,
    among,
    begins_otherwise,
    begins_with,
    between,
    equal,
    unequal,
)

if TYPE_CHECKING:
    from sqlglot import exp

_LITERAL_CASTS = {
    "DATE": Notation.DATE,
    "TIMESTAMP": Notation.TIMESTAMP,
    "TIMESTAMPTZ": Notation.TIMESTAMP,
    "TIMESTAMPLTZ": Notation.TIMESTAMP,
    "TIMESTAMPNTZ": Notation.LOCAL_TIMESTAMP,
    "DATETIME": Notation.LOCAL_TIMESTAMP,
}
_WILDCARDS = "%_\\"


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a table by their names, in any case, as Spark finds them."""

    types: Mapping[str, ColumnType]

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {name.lower(): name for name in self.types}

    def name_of(self, name: str) -> str | None:
        """The name as the table has it; None where there is no such column."""
        return self._names.get(name.lower())

    def value(self, column: str, text: str, notation: Notation | None = None) -> Any:
        """The value of a literal beside a column: as SQL has it, or, without `notation`, a value of the column's type.

        Raises ValueError where it has none.
        """
        kind = self.types[column]
        if not is_comparable(kind):
            raise ValueError(f"{column} is a {kind}")
        return literal_value(kind, text) if notation is None else compared_value(kind, text, notation)


def clause_condition(text: str, columns: NamedColumns) -> Condition:
    """The condition of a WHERE clause, with or without the word WHERE.

    Raises ConfigError without sqlglot, for text that is no predicate, and for a column that the table does not have.
    """
    imported("sqlglot", "advise", "a predicate in SQL")
    import sqlglot
    from sqlglot.errors import SqlglotError

    plain = text.strip().rstrip(";")
    plain = plain[5:] if plain[:6].lower().split() == ["where"] else plain
    try:
        parsed = sqlglot.parse_one(f"SELECT 1 FROM t WHERE {plain}", dialect="spark")
    except (SqlglotError, RecursionError) as error:
        said = str(error).split(". Line")[0].splitlines()
        raise ConfigError(
            f"{text!r} is no predicate: {said[0] if said else type(error).__name__}", hint="write what follows WHERE"
        ) from None
    set_parts = {name for name, value in parsed.args.items() if value}
    where = parsed.args.get("where")
    if where is None or set_parts - {"expressions", "from", "from_", "where", "kind"}:
        raise ConfigError(f"{text!r} is more than a predicate", hint="write what follows WHERE, and nothing after it")
    return _Clause(text, columns).condition(where.this, negated=False)


class _Clause:
    """One clause. A negation goes down to the comparisons: where a value is null, neither is true."""

    def __init__(self, text: str, columns: NamedColumns) -> None:
        from sqlglot import exp

        self._text = text
        self._columns = columns
        self._forms: Mapping[type[Any], Callable[[Any, bool], Condition | None]] = {
            exp.And: self._junction,
            exp.Or: self._junction,
            exp.EQ: self._equality,
            exp.NEQ: self._equality,
            exp.LT: self._comparison,
            exp.LTE: self._comparison,
            exp.GT: self._comparison,
            exp.GTE: self._comparison,
            exp.Between: self._between,
            exp.In: self._among,
            exp.Is: self._is,
            exp.Like: self._like,
            exp.Boolean: self._constant,
            exp.Column: self._flag,
        }

    def condition(self, node: "exp.Expression", *, negated: bool) -> Condition:
        from sqlglot import exp

        while isinstance(node, exp.Paren | exp.Not):
            negated, node = negated != isinstance(node, exp.Not), node.this
        if isinstance(node, exp.Like) and node.args.get("negate"):
            negated = not negated
        form = self._forms.get(type(node))
        found = None if form is None else form(node, negated)
        if found is not None:
            return found
        for column in node.find_all(exp.Column):
            self._column(column)
        return Unknown(node.sql(dialect="spark"))

    def _junction(self, node: "exp.Connector", negated: bool) -> Condition:
        from sqlglot import exp

        # Long chains are deep on their left side.
        parts: list[Condition] = []
        left: exp.Expression = node
        while type(left) is type(node):
            parts.append(self.condition(left.expression, negated=negated))
            left = left.this
        parts.append(self.condition(left, negated=negated))
        kind = AllOf if isinstance(node, exp.And) != negated else AnyOf
        return kind(tuple(reversed(parts)))

    def _equality(self, node: "exp.Binary", negated: bool) -> Condition | None:
        from sqlglot import exp

        sides = self._sides(node)
        if sides is None:
            return None
        column, value, _ = sides
        if value is None:
            return FALSE
        return equal(column, value) if isinstance(node, exp.EQ) != negated else unequal(column, value)

    def _comparison(self, node: "exp.Binary", negated: bool) -> Condition | None:
        from sqlglot import exp

        sides = self._sides(node)
        if sides is None:
            return None
        column, value, is_mirrored = sides
        if value is None:
            return FALSE
        sign = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}[type(node)]
        sign = MIRRORED[sign] if is_mirrored else sign
        return Exists(column, COMPARISONS[sign][negated], value)

    def _between(self, node: "exp.Between", negated: bool) -> Condition | None:
        column = self._column(node.this)
        if column is None:
            return None
        low, high = (self._value(column, node.args[side]) for side in ("low", "high"))
        if low is _NO_LITERAL or high is _NO_LITERAL or low is None or high is None:
            return None
        if negated:
            return AnyOf((Exists(column, Test.BELOW, low), Exists(column, Test.ABOVE, high)))
        return between(column, low, high)

    def _among(self, node: "exp.In", negated: bool) -> Condition | None:
        column = self._column(node.this)
        if column is None or node.args.get("query") is not None or not node.expressions:
            return None
        values = [self._value(column, one) for one in node.expressions]
        if any(value is _NO_LITERAL for value in values):
            return None
        texts = sum(_is_text(one) for one in node.expressions)
        is_mixed = 0 < texts < len(values) - values.count(None)
        if self._columns.types[column].kind is not Kind.STRING and (is_mixed or (texts and negated)):
            # Spark makes texts of all values: 5 is '5', and not '05'.
            return None
        if negated:
            # One null is enough for a NOT IN that is never true.
            return FALSE if None in values else AllOf(tuple(unequal(column, value) for value in values))
        return among(column, [value for value in values if value is not None])

    def _is(self, node: "exp.Is", negated: bool) -> Condition | None:
        from sqlglot import exp

        column = self._column(node.this)
        if column is None or not isinstance(node.expression, exp.Null):
            return None
        return Exists(column, Test.VALUE if negated else Test.NULL)

    def _like(self, node: "exp.Like", negated: bool) -> Condition | None:
        from sqlglot import exp

        column = self._column(node.this)
        if column is None or not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
            return None
        pattern = str(node.expression.this)
        prefix = pattern.removesuffix("%")
        if any(one in prefix for one in _WILDCARDS) or not isinstance(self._value(column, node.expression), str):
            return None
        if prefix == pattern:
            return unequal(column, pattern) if negated else equal(column, pattern)
        return begins_otherwise(column, prefix) if negated else begins_with(column, prefix)

    def _constant(self, node: "exp.Boolean", negated: bool) -> Condition:
        return TRUE if bool(node.this) != negated else FALSE

    def _flag(self, node: "exp.Column", negated: bool) -> Condition | None:
        column = self._column(node)
        if column is None:
            return None
        try:
            return equal(column, self._columns.value(column, str(not negated)))
        except ValueError:
            return None

    def _sides(self, node: "exp.Binary") -> tuple[str, Any, bool] | None:
        """The column, the value that it is compared with, and whether the value is on the left; None for others."""
        for side, other, is_mirrored in ((node.left, node.right, False), (node.right, node.left, True)):
            column = self._column(side)
            if column is not None:
                value = self._value(column, other)
                return None if value is _NO_LITERAL else (column, value, is_mirrored)
        return None

    def _column(self, node: "exp.Expression") -> str | None:
        """The name of a column; None for what is none, and for a field of a struct. Raises ConfigError."""
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            return None
        owner = node.parts[0].name if len(node.parts) > 1 else ""
        if self._columns.name_of(owner) is not None:
            return None
        found = self._columns.name_of(node.name)
        if found is None:
            known = ", ".join([*self._columns.types][:20])
            raise ConfigError(
                f"the predicate {self._text!r} names the column {node.name}, which the table does not have",
                hint=f"its columns are {known}",
            )
        return found

    def _value(self, column: str, node: "exp.Expression") -> Any:
        """The value of a literal, None for NULL; `_NO_LITERAL` for all else."""
        from sqlglot import exp

        sign = ""
        while isinstance(node, exp.Paren | exp.Neg):
            sign, node = sign + "-" * isinstance(node, exp.Neg), node.this
        if isinstance(node, exp.Null):
            return None
        cast = _LITERAL_CASTS.get(node.to.this.name) if isinstance(node, exp.Cast) else None
        literal = node.this if cast is not None else node
        if len(sign) > 1 or not isinstance(literal, exp.Literal | exp.Boolean) or (sign and _is_text(literal)):
            return _NO_LITERAL
        number = Notation.NUMBER if isinstance(literal, exp.Literal) else Notation.WORD
        try:
            notation = cast or (Notation.TEXT if _is_text(literal) else number)
            return self._columns.value(column, f"{sign}{literal.this}", notation)
        except (ValueError, OverflowError):
            return _NO_LITERAL


def _is_text(node: "exp.Expression") -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and bool(node.is_string)


_NO_LITERAL = object()
