"""The merge rule of a table: which of two records of one key readers see, from the properties of the table.

The rule is that of the release that owns the table version (6: 0.15.0, 8: 1.0.2, 9: 1.2.0), because that release's
readers and compactions say what the rows of the table are. Merging has two levels: first the records of the log files,
oldest first (the delta merge), then the result and the row of the base file (the final merge).

Sources: HoodieTableConfig, the payload classes and HoodieRecordMerger of Apache Hudi 0.15.0; HoodieTableConfig,
FileGroupRecordBuffer of 1.0.2; BufferedRecordMergerFactory, PartialUpdateHandler, DeleteContext of 1.2.0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from ..errors import UnsupportedTable
from ..table.support import LOG_FILES, WITH_HUDI
from ..table_config import TableConfig

MODEL = "org.apache.hudi.common.model."
"""The package of Hudi's payload classes."""
_DEBEZIUM = MODEL + "debezium."
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_PAYLOAD = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_MODE = "hoodie.record.merge.mode"
_STRATEGY = "hoodie.record.merge.strategy.id"
_INITIAL_VERSION, _WITHOUT_PAYLOAD, _NEWEST = "hoodie.table.initial.version", "6", 9
_LATEST = "OverwriteWithLatestAvroPayload"
_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
_PARTIAL_MODE = "hoodie.table.partial.update.mode"
_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD, _DELETE_MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_META_FIELDS = "hoodie.populate.meta.fields"
_TOAST = "__debezium_unavailable_value"
BINLOG_PLACE = "_event_seq"
"""The column with the place of a row in MySQL's binary log."""
META_COLUMNS = "_hoodie_"
"""The prefix of the names of meta columns."""


class Final(Enum):
    """When the result of the log records replaces the row of the base file, unless it deletes it."""

    ALWAYS = "always"
    NOT_LESS = "unless its ordering value is less"
    GREATER = "only if its ordering value is greater"
    LATER_IN_BINLOG = "only if its file and position in the binary log of MySQL are greater"


class Fill(Enum):
    """Which values of the preferred record are replaced by the values of the other record."""

    NOTHING = "none"
    NULLS = "nulls"
    PLACEHOLDER = "texts and bytes that equal the placeholder"


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """A data record whose column `field` has the text `value` deletes its key."""

    field: str
    value: str
    ignores_case: bool = False


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How two records of one key are merged; every field is a fact of a release, a merge mode or a payload class."""

    ordering: tuple[str, ...] = ()
    """The ordering fields; () when the newer record always wins."""
    ties_to_older: bool = False
    """Delta merge: of two data records with equal ordering values the older one wins."""
    deletes_are_forgotten: bool = False
    """Delta merge: a data record replaces an older delete, whatever its ordering value (0.15.0)."""
    unordered_deletes_yield: bool = False
    """Delta merge: a data record replaces an older delete that has no ordering value (1.2.0)."""
    final: Final = Final.ALWAYS
    entries_always_delete: bool = False
    """Final merge: an entry of a delete block deletes the row, whatever its ordering value (0.15.0)."""
    null_is_least: bool = False
    """Final merge: a null ordering value of the base file is less than all others (0.15.0)."""
    fill: Fill = Fill.NOTHING
    placeholder: str = ""
    fills_logs: bool = False
    """Whether the delta merge fills values."""
    fills_base: bool = False
    """Whether the final merge fills values of a log record that is preferred."""
    fills_base_rows: bool = False
    """Whether the final merge fills values of a row of the base file that is preferred (not in 0.15.0, Postgres)."""
    newest_meta_columns: bool = False
    """Both merges: the meta columns are those of the newer record, even when the older one is preferred."""
    converts_entries: bool = False
    """Ordering values of delete entries are compared even when Hudi stores them as another type (1.2.0)."""
    exact_floats: bool = False
    """A float of an Avro block becomes a double of the same value, not of its shortest decimal text (0.15.0, 1.0.2)."""
    applies_originals: bool = False
    """The block of a log compaction does not replace the blocks that it was made from (0.15.0, 1.0.2)."""
    each_base_row: bool = False
    """Final merge: all rows of the base file with one key are merged, as in a write, and not the first one alone."""
    zero_orders_rows: bool = False
    """Of two rows of one write, a delete with the ordering value 0 has one (0.15.0, 1.0.2)."""
    zero_orders: bool = False
    """Delta merge: such a delete has an ordering value, which in log files it never has."""
    marker: DeleteMarker | None = None

    @property
    def of_rows(self) -> "MergeRule":
        """The rule for rows of one write, none of which forgets the ordering value of a delete before it."""
        return replace(self, deletes_are_forgotten=False, zero_orders=self.zero_orders_rows)

    @property
    def ordering_columns(self) -> list[str]:
        """The columns of the ordering fields, which may lie inside a struct."""
        return [name.partition(".")[0] for name in self.ordering]


def payload_is_of_write(config: TableConfig) -> bool:
    """Whether each write names the payload class that merges its rows: copy-on-write tables of version 6 store none."""
    in_table = config.version.copy_on_write_names_payload or config.is_merge_on_read
    return not in_table and _PAYLOAD not in config.raw


def payload_class(config: TableConfig) -> str:
    """The payload class that the table names, "" for none."""
    return config.raw.get(_PAYLOAD) or config.raw.get(_LEGACY_PAYLOAD, "")


def rule_of_write(config: TableConfig, payload: str) -> MergeRule:
    """The rule of a write with this option `hoodie.datasource.write.payload.class`, "" for none; as `merge_rule`."""
    if payload and payload_is_of_write(config):
        config = replace(config, raw={**config.raw, _PAYLOAD: payload})
    # Without meta fields it is log files whose records have no keys; a write makes keys of its rows.
    return merge_rule(replace(config, raw={key: text for key, text in config.raw.items() if key != _META_FIELDS}))


def merge_rule(config: TableConfig) -> MergeRule:
    """The rule of a table. Raises UnsupportedTable, naming the property, for a rule that is not supported.

    The options `hoodie.payload.delete.*` of writers of version 6 are no part of it: such writers leave delete entries,
    and queries of 0.15.0 do not know the options (its compactions do).
    """
    found = _READERS[config.version.number](config)
    for feature, text in LOG_FILES.items():
        if config.raw.get(feature.told_by, "").lower() == text:
            raise feature.refusal(f"the table {config.name}", f"{feature.told_by}={text}")
    return found


def turned_by_upgrade(config: TableConfig) -> str:
    """What an upgrade by Hudi from version 6 to 9 has changed for rows that come late; "" for nothing.

    With an ordering field, the upgrade makes EVENT_TIME_ORDERING of OverwriteWithLatestAvroPayload, and of whatever the
    writes to a copy-on-write table named: version 6 stores no payload class there (EightToNineUpgradeHandler; seen with
    1.1.1 and 1.2.0). Tables that 1.0.2 made keep their rules.
    """
    before = config.raw.get(_LEGACY_PAYLOAD, "").rpartition(".")[2]
    rule = config.raw.get(_MODE)
    if config.version.number != _NEWEST or rule != "EVENT_TIME_ORDERING" or not config.ordering_fields:
        return ""
    was_of_write = not config.is_merge_on_read and config.raw.get(_INITIAL_VERSION) == _WITHOUT_PAYLOAD
    if before != _LATEST and not (was_of_write and before):
        return ""
    who = f"its rule was {_LATEST}" if before == _LATEST else f"each write named its rule, by default {_LATEST}"
    return (
        f"since Hudi's upgrade to version {_NEWEST} an upsert leaves a row as it is where its value of "
        f"{', '.join(config.ordering_fields)} is greater; before, {who}: the row that was given won, however late it "
        f"came ({_MODE}={rule})"
    )


# ------------------------------------------------------------------------------------------------ version 6: payloads


def _by_payload(config: TableConfig) -> MergeRule:
    strategy_key = _STRATEGY if _STRATEGY in config.raw else _OLD_STRATEGY
    strategy = config.raw.get(strategy_key, EVENT_TIME_STRATEGY)
    if strategy not in (EVENT_TIME_STRATEGY, COMMIT_TIME_STRATEGY):
        raise _refused(config, strategy_key, strategy)
    # A version 6 table that 1.x created names no payload class where 1.x has a default of its own.
    absent = "DefaultHoodieRecordPayload" if _STRATEGY in config.raw else "OverwriteWithLatestAvroPayload"
    if strategy == COMMIT_TIME_STRATEGY:
        absent = "OverwriteWithLatestAvroPayload"
    named = config.raw.get(_PAYLOAD, MODEL + absent).replace("com.uber.hoodie", "org.apache.hudi", 1)
    make = _PAYLOADS.get(named)
    if make is None:
        raise _refused(config, _PAYLOAD, named)
    fields = _single_ordering(config)
    rule = MergeRule(
        fields,
        deletes_are_forgotten=True,
        entries_always_delete=True,
        null_is_least=True,
        exact_floats=True,
        applies_originals=True,
        zero_orders_rows=True,
    )
    return make(rule)


_PAYLOADS: dict[str, Callable[[MergeRule], MergeRule]] = {
    MODEL + "OverwriteWithLatestAvroPayload": lambda rule: rule,
    MODEL + "DefaultHoodieRecordPayload": lambda rule: replace(rule, final=Final.NOT_LESS),
    MODEL + "EventTimeAvroPayload": lambda rule: replace(rule, final=Final.NOT_LESS),
    MODEL + "FirstValueAvroPayload": lambda rule: replace(rule, final=Final.GREATER, ties_to_older=True),
    MODEL + "PartialUpdateAvroPayload": lambda rule: replace(
        rule,
        final=Final.NOT_LESS,
        fill=Fill.NULLS,
        fills_logs=True,
        fills_base=True,
        fills_base_rows=True,
        newest_meta_columns=True,
    ),
    MODEL + "OverwriteNonDefaultsWithLatestAvroPayload": lambda rule: replace(rule, fill=Fill.NULLS, fills_base=True),
    MODEL + "AWSDmsAvroPayload": lambda rule: replace(rule, marker=DeleteMarker("Op", "D", True)),
    _DEBEZIUM + "PostgresDebeziumAvroPayload": lambda rule: replace(
        rule,
        final=Final.NOT_LESS,
        fill=Fill.PLACEHOLDER,
        placeholder=_TOAST,
        fills_base=True,
        marker=DeleteMarker("_change_operation_type", "d", True),
    ),
    _DEBEZIUM + "MySqlDebeziumAvroPayload": lambda rule: replace(
        rule, final=Final.LATER_IN_BINLOG, marker=DeleteMarker("_change_operation_type", "d", True)
    ),
}


# ------------------------------------------------------------------------------------------- versions 8 and 9: modes


def _by_mode_of_8(config: TableConfig) -> MergeRule:
    rule = _by_mode(config, _single_ordering(config))
    return replace(rule, exact_floats=True, applies_originals=True, zero_orders_rows=True)


def _by_mode_of_9(config: TableConfig) -> MergeRule:
    rule = replace(_by_mode(config, config.ordering_fields), unordered_deletes_yield=True, converts_entries=True)
    return _with_marker(config, _with_partial_updates(config, rule))


def _by_mode(config: TableConfig, ordering: tuple[str, ...]) -> MergeRule:
    mode = config.raw.get(_MODE, "")
    if mode == "COMMIT_TIME_ORDERING" or (mode == "EVENT_TIME_ORDERING" and not ordering):
        return MergeRule()
    if mode == "EVENT_TIME_ORDERING":
        return MergeRule(ordering, final=Final.NOT_LESS)
    if mode == "CUSTOM":
        by_payload = config.raw.get(_STRATEGY, PAYLOAD_STRATEGY) == PAYLOAD_STRATEGY
        key = _PAYLOAD if by_payload and _PAYLOAD in config.raw else _STRATEGY
        raise _refused(config, key, config.raw.get(key, ""))
    raise _refused(config, _MODE, mode)


def _with_marker(config: TableConfig, rule: MergeRule) -> MergeRule:
    known = (_DELETE_FIELD, _DELETE_MARKER, _UNAVAILABLE)
    for key in sorted(config.raw):
        if key.startswith(_PROPERTY) and key.removeprefix(_PROPERTY) not in known:
            raise _refused(config, key, config.raw[key])
    field, value = (config.raw.get(_PROPERTY + key) for key in (_DELETE_FIELD, _DELETE_MARKER))
    if (field is None) != (value is None):
        raise _refused(config, _PROPERTY + (_DELETE_FIELD if value is None else _DELETE_MARKER), field or value or "")
    return rule if field is None or value is None else replace(rule, marker=DeleteMarker(field, value))


def _with_partial_updates(config: TableConfig, rule: MergeRule) -> MergeRule:
    mode = config.raw.get(_PARTIAL_MODE)
    if mode is None:
        return rule
    filling = replace(rule, fills_logs=True, fills_base=True, fills_base_rows=True)
    if mode == "IGNORE_DEFAULTS":
        return replace(filling, fill=Fill.NULLS)
    if mode != "FILL_UNAVAILABLE":
        raise _refused(config, _PARTIAL_MODE, mode)
    placeholder = config.raw.get(_PROPERTY + _UNAVAILABLE)
    return rule if placeholder is None else replace(filling, fill=Fill.PLACEHOLDER, placeholder=placeholder)


_READERS = {6: _by_payload, 8: _by_mode_of_8, 9: _by_mode_of_9}


def _single_ordering(config: TableConfig) -> tuple[str, ...]:
    """The ordering field; () without one. Releases before 1.1 take a list for the name of one field."""
    fields = config.ordering_fields
    if len(fields) > 1:
        key = next(k for k in ("hoodie.table.ordering.fields", "hoodie.table.precombine.field") if k in config.raw)
        raise _refused(config, key, config.raw[key])
    return fields


def _refused(config: TableConfig, key: str, value: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"the table {config.name} has {key}={value}, a merge rule that is not supported", hint=WITH_HUDI
    )
