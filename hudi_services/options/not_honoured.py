"""Keys of Hudi that ask for something that is not done here: commands refuse them, or warn.

A command refuses a key with which Hudi would write other rows, or another table. It warns of a key with which Hudi
would do something more, or something beside the table. The commands of a key are those in which Hudi would do it; for
the others it is of no consequence. A value that says what is done anyway is accepted.
Source: HoodieWriteConfig, HoodieTableConfig, HoodieMetadataConfig, HoodieStorageConfig, DataSourceOptions of Apache
Hudi 0.15.0 to 1.2.0.
"""

from dataclasses import dataclass

from .option import Phase

NOWHERE = Phase(0)
_WRITES = Phase.INGEST | Phase.CREATE
_COMMITS = Phase.INGEST | Phase.WRITE
_PLANS = Phase.PLAN | Phase.COMPACTION
_ROLLBACKS = Phase.INGEST | Phase.WRITE | Phase.CLEAN | Phase.REPAIR
_EVERYWHERE = Phase.ANY | Phase.CREATE
_FALSE, _TRUE = ("false",), ("true",)
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
_IO = "org.apache.hudi.io."
_MERGE_HANDLES = (_IO + "filegroupreaderbasedmergehandle", _IO + "hoodiemergehandle", _IO + "hoodiewritemergehandle")
_SUPPORT = "org.apache.hudi.io.storage.row."
_REJECTING = "org.apache.hudi.client.clustering.update.strategy.sparkrejectupdatestrategy"
_PARSER = "org.apache.hudi.keygen.parser."
_PARSERS = (_PARSER + "hoodiedatetimeparser", _PARSER + "hoodiedatetimeparserimpl")
_HINT = "leave the key out, or write with Apache Hudi"
_SERVICE_HINT = "leave the key out, or run this service with Apache Hudi"
_BY_MODE = "set hoodie.write.record.merge.mode when the table is created, or write with Apache Hudi"
_DELETES = "mark deleted rows in the column _hoodie_is_deleted, or write them with --operation delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotHonoured:
    """What is not done, and in which commands that is refused, or told by a warning."""

    what: str
    """What does not happen here, as the end of a sentence."""
    refused: Phase = NOWHERE
    warned: Phase = NOWHERE
    harmless: tuple[str, ...] = ()
    """The values that change nothing, in lower case; an empty value is always one."""
    hint: str = ""
    """The way out, where it is refused."""
    is_secret: bool = False
    """Whether the value must not be shown."""


def _refused(
    what: str, harmless: tuple[str, ...] = (), *, by: Phase = _WRITES, warned: Phase = NOWHERE, hint: str = ""
) -> NotHonoured:
    hint = hint or (_HINT if by & Phase.INGEST else _SERVICE_HINT)
    return NotHonoured(what=what, refused=by, warned=warned, harmless=harmless, hint=hint)


def _warned(what: str, by: Phase, harmless: tuple[str, ...] = _FALSE, *, is_secret: bool = False) -> NotHonoured:
    return NotHonoured(what=what, warned=by, harmless=harmless, is_secret=is_secret)


_NOT_MERGED_SO = "rows are merged by the table's rule alone"
_ONE_SCHEMA = "the schema is that of the rows and of the table"
_OWN_WRITER = "files are written by no class of Hudi or of users"
_SYNC = "no catalog is told of the commit"
_SERVICES_HERE = "the services run here, and no manager is asked"
_KEPT = "a rollback always keeps copies of the timeline files that it deletes, in .hoodie/.hudi_services/removed"
_MADE_ELSEWHERE = "no index is made by a write: run hudi-services index-bootstrap"
_AWS = "the credentials for DynamoDB come from the environment of this process"
_FAILED_ROWS = "a row that cannot be written ends the write"

NOT_HONOURED: dict[str, NotHonoured] = {
    # Other rows.
    "hoodie.payload.delete.field": _refused("rows with a marker of their own are not deleted", hint=_DELETES),
    "hoodie.payload.delete.marker": _refused("rows with a marker of their own are not deleted", hint=_DELETES),
    "hoodie.payload.update.on.same.ordering.field": _refused(
        "of rows with the same ordering value the newer one counts", _TRUE, by=_WRITES | Phase.WRITE
    ),
    "hoodie.table.partial.update.mode": _refused("rows are never filled from older ones in a new table"),
    "hoodie.write.partial.update.schema": _refused("rows are never filled from older ones"),
    "hoodie.datasource.write.record.merger.impls": _refused(_NOT_MERGED_SO, _MERGERS),
    "hoodie.write.record.merge.custom.implementation.classes": _refused("mergers are not loaded", _MERGERS),
    "hoodie.record.merge.strategy.id": _refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.write.record.merge.strategy.id": _refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.datasource.write.record.merger.strategy": _refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.compaction.record.merger.strategy": _refused("the merge mode decides", hint=_BY_MODE),
    "hoodie.write.merge.handle.class": _refused(_NOT_MERGED_SO, _MERGE_HANDLES),
    "hoodie.write.concat.handle.class": _refused(_NOT_MERGED_SO, (_IO + "hoodieconcathandle",)),
    "hoodie.compact.merge.handle.class": _refused(_NOT_MERGED_SO, _MERGE_HANDLES, by=Phase.WRITE),
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": _refused(
        "keys and partition paths of times have one form", _FALSE
    ),
    "hoodie.keygen.datetime.parser.class": _refused("times are parsed by Hudi's own parser", _PARSERS),
    "hoodie.deltastreamer.keygen.datetime.parser.class": _refused("times are parsed by Hudi's own parser", _PARSERS),
    "hoodie.datasource.write.slash.separated.date.partitioning": _refused("dates are one folder each", _FALSE),
    "hoodie.datasource.write.drop.partition.columns": _refused("partition columns stay in the rows", _FALSE),
    "hoodie.allow.operation.metadata.field": _refused("rows do not tell their operation", _FALSE),
    "hoodie.write.schema": _refused(_ONE_SCHEMA),
    "hoodie.datasource.write.reconcile.schema": _refused(
        _ONE_SCHEMA, _FALSE, hint="set hoodie.write.set.null.for.missing.columns=true where rows lack columns"
    ),
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": _refused(
        "columns that the rows lack stay in the table", _FALSE
    ),
    "hoodie.schema.on.read.enable": _refused("columns are not renamed, and there is no history of schemas", _FALSE),
    "hoodie.static.overwrite.partition.paths": _refused(
        "an overwrite replaces the partitions of its rows",
        hint="delete the other partitions with --operation delete_partition",
    ),
    "hoodie.precommit.validators": _refused("validators are not run", warned=Phase.WRITE),
    "hoodie.prewrite.validators": _refused("validators are not run"),
    "hoodie.write.lock.conflict.resolution.strategy": _refused(
        "conflicts are found by Hudi's own strategies", _RESOLUTIONS
    ),
    "hoodie.index.class": _refused("indexes of users are not loaded", hint="set hoodie.index.type"),
    "hoodie.fileid.prefix.provider.class": _refused(
        "file ids are random", ("org.apache.hudi.table.randomfileidprefixprovider",)
    ),
    "hoodie.compaction.plan.generator": _refused(
        "plans are made by the rules of Hudi's own generator",
        ("org.apache.hudi.table.action.compact.plan.generators.hoodiecompactionplangenerator",),
        by=Phase.COMPACTION,
    ),
    # Another table.
    "hoodie.metaserver.enabled": _refused(
        "the timeline is that in the table's folder", _FALSE, by=_EVERYWHERE, hint=_SERVICE_HINT
    ),
    "hoodie.bootstrap.base.path": _refused("tables are not bootstrapped"),
    "hoodie.table.cdc.enabled": _refused("change data capture is not written", _FALSE),
    "hoodie.table.base.file.format": _refused("base files are parquet", ("parquet",)),
    "hoodie.base.file.format": _refused("base files are parquet", ("parquet",)),
    "hoodie.table.ro.file.format": _refused("base files are parquet", ("parquet",)),
    "hoodie.table.log.file.format": _refused("log files have Hudi's own format", ("hoodie_log",)),
    "hoodie.table.rt.file.format": _refused("log files have Hudi's own format", ("hoodie_log",)),
    "hoodie.table.multiple.base.file.formats.enable": _refused("base files are parquet", _FALSE),
    "hoodie.table.format": _refused("tables have Hudi's own format", ("native",)),
    "hoodie.archivelog.folder": _refused("a new table has the archive where its version has it", ("archived",)),
    "hoodie.timeline.history.path": _refused("a new table has the archive where its version has it", ("history",)),
    "hoodie.timeline.path": _refused("a new table has the timeline where its version has it", ("timeline",)),
    # Beside the table.
    "hoodie.datasource.hive_sync.enable": _warned(_SYNC, _COMMITS),
    "hoodie.datasource.meta.sync.enable": _warned(_SYNC, _COMMITS),
    "hoodie.write.commit.callback.on": _warned("nobody is called after a commit", _COMMITS),
    "hoodie.client.init.callback.classes": _warned("no callback is run", _EVERYWHERE, ()),
    "hoodie.metrics.on": _warned("no metrics are sent", _EVERYWHERE),
    "hoodie.metadata.metrics.enable": _warned("no metrics are sent", _EVERYWHERE),
    "hoodie.errortable.enable": _warned(f"there is no error table: {_FAILED_ROWS}", Phase.INGEST),
    "hoodie.write.ignore.failed": _warned(_FAILED_ROWS, Phase.INGEST),
    "hoodie.aws.access.key": _warned(_AWS, _EVERYWHERE, (), is_secret=True),
    "hoodie.aws.secret.key": _warned(_AWS, _EVERYWHERE, (), is_secret=True),
    "hoodie.aws.session.token": _warned(_AWS, _EVERYWHERE, (), is_secret=True),
    "hoodie.aws.role.arn": _warned(_AWS, _EVERYWHERE, (), is_secret=True),
    # Other services, and services that do more.
    "hoodie.log.compaction.inline": _warned("log compactions are not planned", Phase.INGEST),
    "hoodie.log.compaction.enable": _warned("log compactions are not planned", _COMMITS | Phase.COMPACTION),
    "hoodie.metadata.log.compaction.enable": _warned("the metadata table has no log compactions", _COMMITS),
    "hoodie.partition.ttl.inline": _warned("no partition is deleted for its age", Phase.INGEST),
    "hoodie.prewrite.cleaner.policy": _warned("no clean precedes a write", Phase.INGEST, ("none",)),
    "hoodie.archive.merge.enable": _warned(
        "archive files of table version 6 are not merged", Phase.ARCHIVE | Phase.INGEST
    ),
    "hoodie.table.service.manager.enabled": _warned(_SERVICES_HERE, _PLANS | _COMMITS | Phase.CLEAN),
    "hoodie.metadata.table.service.manager.enabled": _warned(_SERVICES_HERE, _COMMITS),
    "hoodie.rollback.instant.backup.enabled": _warned(_KEPT, _ROLLBACKS),
    "hoodie.metadata.max.deltacommits.when_pending": _warned(
        "no commit fails because the metadata table has many delta commits", _COMMITS, ()
    ),
    "hoodie.clustering.updates.strategy": _warned(
        "a write to file groups of a pending plan is refused", Phase.INGEST, (_REJECTING,)
    ),
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": _warned(
        "a write to file groups of a pending plan is refused", Phase.INGEST
    ),
    "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution": _warned(
        "a group gives way to a write that changes it, and to no other one", Phase.WRITE
    ),
    "hoodie.write.num.retries.on.conflict.failures": _warned(
        "a write that meets a conflict is not repeated", Phase.INGEST, ("0",)
    ),
    "hoodie.allow.empty.commit": _warned(
        "a write without rows makes no commit, and one that finds no row to change makes one", Phase.INGEST, ()
    ),
    "hoodie.write.track.event.time.watermark": _warned("commits do not tell event times", Phase.INGEST),
    # Indexes.
    "hoodie.metadata.index.drop": _warned("no index is dropped", _COMMITS, ()),
    "hoodie.datasource.write.secondarykey.column": _warned(_MADE_ELSEWHERE, Phase.INGEST, ()),
    "hoodie.metadata.index.secondary.column": _warned(_MADE_ELSEWHERE, Phase.INGEST, ()),
    "hoodie.metadata.index.expression.column": _warned(_MADE_ELSEWHERE, Phase.INGEST, ()),
    # The form of files.
    "hoodie.layout.optimize.curve.build.method": _warned(
        "a curve is built over equal shares of the rows, which a sample of each group tells (as with SAMPLE)",
        Phase.WRITE,
        ("sample",),
    ),
    "hoodie.record.size.estimator.class": _warned(
        "record sizes are the averages of the newest commits",
        Phase.INGEST,
        ("org.apache.hudi.estimator.averagerecordsizeestimator",),
    ),
    "hoodie.parquet.dictionary.enabled": _warned("columns have dictionaries where these are smaller", _COMMITS, _TRUE),
    "hoodie.parquet.outputtimestamptype": _warned(
        "timestamps have the unit that the table's schema says", _COMMITS, ("timestamp_micros",)
    ),
    "hoodie.parquet.writelegacyformat.enabled": _warned("decimals and lists have the newer form", _COMMITS),
    "hoodie.parquet.write.config.injector.class": _warned(_OWN_WRITER, _COMMITS, ()),
    "hoodie.parquet.spark.row.write.support.class": _warned(
        _OWN_WRITER, _COMMITS, (_SUPPORT + "hoodierowparquetwritesupport",)
    ),
    "hoodie.avro.write.support.class": _warned(_OWN_WRITER, _COMMITS, ("org.apache.hudi.avro.hoodieavrowritesupport",)),
}


MAKE_INDEXES: dict[str, str] = {
    "hoodie.metadata.record.index.enable": "record_index",
    "hoodie.metadata.global.record.level.index.enable": "record_index",
    "hoodie.metadata.record.level.index.enable": "record_index",
    "hoodie.metadata.index.bloom.filter.enable": "bloom_filters",
}
"""Keys with which Hudi's writers make a partition of the metadata table (`true`), or delete it (`false`)."""
DELETE_INDEXES: dict[str, str] = {
    "hoodie.metadata.index.expression.enable": "expr_index_",
    "hoodie.metadata.index.secondary.enable": "secondary_index_",
}
"""Keys with which Hudi's writers delete the partitions with these beginnings when they are `false`."""
DELETE_STATISTICS: dict[str, str] = {
    "hoodie.metadata.enable": "files",
    "hoodie.metadata.index.column.stats.enable": "column_stats",
}
"""The same, of keys that count when a table is made, and so are options."""
INDEXES_BY: Phase = _COMMITS
NOT_MADE = _MADE_ELSEWHERE
KEPT = "the table's {} is kept, and follows every commit"
