"""Keys of Hudi's writers that are not honoured here: those that would change the rows, or the table, are refused.

Keys that only make a writer faster or slower are not among them. A value that says what is done anyway is accepted.
Source: HoodieWriteConfig, HoodieTableConfig, DataSourceOptions of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ConfigError
from .resolve import Options

_FALSE = ("false",)
_MERGERS = (
    "org.apache.hudi.common.model.hoodieavrorecordmerger",
    "org.apache.hudi.hoodiesparkrecordmerger",
    "org.apache.hudi.defaultsparkrecordmerger",
    "org.apache.hudi.overwritewithlatestsparkrecordmerger",
)
_TRANSACTION = "org.apache.hudi.client.transaction."
_RESOLUTIONS = (
    _TRANSACTION + "simpleconcurrentfilewritesconflictresolutionstrategy",
    _TRANSACTION + "preferwriterconflictresolutionstrategy",
    _TRANSACTION + "bucketindexconcurrentfilewritesconflictresolutionstrategy",
)
_HINT = "leave the key out, or write with Apache Hudi"
_BY_MODE = "set hoodie.write.record.merge.mode when the table is created, or write with Apache Hudi"


@dataclass(frozen=True, slots=True)
class _Refused:
    """`harmless` are the values that change nothing, in lower case; an empty value is always one."""

    what: str
    """What does not happen here, as the end of a sentence."""
    harmless: tuple[str, ...] = ()
    hint: str = _HINT


_DELETES = "mark deleted rows in the column _hoodie_is_deleted, or write them with --operation delete"
REFUSED: dict[str, _Refused] = {
    "hoodie.payload.delete.field": _Refused("rows with a marker of their own are not deleted", hint=_DELETES),
    "hoodie.payload.delete.marker": _Refused("rows with a marker of their own are not deleted", hint=_DELETES),
    "hoodie.table.partial.update.mode": _Refused("rows are never filled from older ones in a new table"),
    "hoodie.datasource.write.record.merger.impls": _Refused("rows are merged by the table's rule alone", _MERGERS),
    "hoodie.write.record.merge.custom.implementation.classes": _Refused("mergers are not loaded", _MERGERS),
    "hoodie.record.merge.strategy.id": _Refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.write.record.merge.strategy.id": _Refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.datasource.write.record.merger.strategy": _Refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": _Refused(
        "keys and partition paths of times have one form", _FALSE
    ),
    "hoodie.datasource.write.slash.separated.date.partitioning": _Refused("dates are one folder each", _FALSE),
    "hoodie.datasource.write.drop.partition.columns": _Refused("partition columns stay in the rows", _FALSE),
    "hoodie.table.cdc.enabled": _Refused("change data capture is not written", _FALSE),
    "hoodie.table.base.file.format": _Refused("base files are parquet", ("parquet",)),
    "hoodie.base.file.format": _Refused("base files are parquet", ("parquet",)),
    "hoodie.allow.operation.metadata.field": _Refused("rows do not tell their operation", _FALSE),
    "hoodie.write.schema": _Refused("the schema is that of the rows and of the table"),
    "hoodie.datasource.write.reconcile.schema": _Refused(
        "the schema is that of the rows and of the table",
        _FALSE,
        "set hoodie.write.set.null.for.missing.columns=true where rows lack columns",
    ),
    "hoodie.schema.on.read.enable": _Refused("columns are not renamed, and there is no history of schemas", _FALSE),
    "hoodie.bootstrap.base.path": _Refused("tables are not bootstrapped"),
    "hoodie.static.overwrite.partition.paths": _Refused(
        "an overwrite replaces the partitions of its rows",
        hint="delete the other partitions with --operation delete_partition",
    ),
    "hoodie.precommit.validators": _Refused("validators are not run"),
    "hoodie.write.lock.conflict.resolution.strategy": _Refused(
        "conflicts are found by Hudi's own strategies", _RESOLUTIONS
    ),
    "hoodie.index.class": _Refused("indexes of users are not loaded", hint="set hoodie.index.type"),
    "hoodie.fileid.prefix.provider.class": _Refused(
        "file ids are random", ("org.apache.hudi.table.randomfileidprefixprovider",)
    ),
}
_SYNC = "no catalog is told of the write"
_INDEX = "no index is made by a write: run hudi-services index-bootstrap"
_METADATA_PARTITIONS = {
    "hoodie.metadata.record.index.enable": "record_index",
    "hoodie.metadata.global.record.level.index.enable": "record_index",
    "hoodie.metadata.record.level.index.enable": "record_index",
    "hoodie.metadata.index.bloom.filter.enable": "bloom_filters",
}
WARNED: dict[str, str] = {
    "hoodie.datasource.hive_sync.enable": _SYNC,
    "hoodie.datasource.meta.sync.enable": _SYNC,
    "hoodie.write.commit.callback.on": "nobody is called after a commit",
    "hoodie.log.compaction.inline": "log compactions are not planned",
    "hoodie.partition.ttl.inline": "no partition is deleted for its age",
    **dict.fromkeys(_METADATA_PARTITIONS, _INDEX),
}
"""Keys that ask for something beside the rows when they are `true`, and what happens instead."""


def refuse_not_honoured(options: Options) -> None:
    """Raise ConfigError for a key that would make Hudi write other rows, or another table."""
    for key, one in REFUSED.items():
        source, value = options.given(key)
        if value and value.lower() not in one.harmless:
            raise ConfigError(f"{key}={value} (from {source}) is not supported: {one.what}", hint=one.hint)


def warnings_of(options: Options, metadata_partitions: tuple[str, ...]) -> Iterator[str]:
    """Sentences on what keys ask for, and does not happen; an index that the table has follows every write."""
    for key, what in WARNED.items():
        source, value = options.given(key)
        if value.lower() == "true" and _METADATA_PARTITIONS.get(key) not in metadata_partitions:
            yield f"{key}={value} (from {source}) is ignored: {what}"
