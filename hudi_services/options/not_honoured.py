"""Keys of Hudi that ask for something that is not done here: commands refuse them, or warn.

A command refuses a key with which Hudi would write other rows, or another table. It warns of a key with which Hudi
would do something more, or something beside the table. The commands of a key are those in which Hudi would do it; for
the others it is of no consequence. A value that says what is done anyway is accepted.
Source: HoodieWriteConfig, HoodieTableConfig, HoodieMetadataConfig, HoodieStorageConfig, DataSourceOptions of Apache
Hudi 0.15.0 to 1.2.0.
"""

from .option import NOWHERE, IndexSwitch, Key, NotHonoured, Phase

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


def _refused(
    key: str, what: str, harmless: tuple[str, ...] = (), *, by: Phase = _WRITES, warned: Phase = NOWHERE, hint: str = ""
) -> NotHonoured:
    return NotHonoured(key, what, by, warned, harmless, hint or (_HINT if by & Phase.INGEST else _SERVICE_HINT))


def _warned(
    key: str, what: str, by: Phase, harmless: tuple[str, ...] = _FALSE, *, is_secret: bool = False
) -> NotHonoured:
    return NotHonoured(key, what, warned=by, harmless=harmless, is_secret=is_secret)


_NOT_MERGED_SO = "rows are merged by the table's rule alone"
_ONE_SCHEMA = "the schema is that of the rows and of the table"
_OWN_WRITER = "files are written by no class of Hudi or of users"
_SYNC = "no catalog is told of the commit"
_SERVICES_HERE = "the services run here, and no manager is asked"
_KEPT = "a rollback always keeps copies of the timeline files that it deletes, in .hoodie/.hudi_services/removed"
NOT_MADE = "no index is made by a write, only by index-bootstrap"
_AWS = "the credentials for DynamoDB come from the environment of this process"
_FAILED_ROWS = "a row that cannot be written ends the write"

INDEXES_BY: Phase = _COMMITS
KEPT = "the table's {} is kept, and follows every commit"

ALL: tuple[Key, ...] = (
    # Other rows.
    _refused("hoodie.payload.delete.field", "rows with a marker of their own are not deleted", hint=_DELETES),
    _refused("hoodie.payload.delete.marker", "rows with a marker of their own are not deleted", hint=_DELETES),
    _refused(
        "hoodie.payload.update.on.same.ordering.field",
        "of rows with the same ordering value the newer one counts",
        _TRUE,
        by=_WRITES | Phase.WRITE,
    ),
    _refused("hoodie.table.partial.update.mode", "rows are never filled from older ones in a new table"),
    _refused("hoodie.write.partial.update.schema", "rows are never filled from older ones"),
    _refused("hoodie.datasource.write.record.merger.impls", _NOT_MERGED_SO, _MERGERS),
    _refused("hoodie.write.record.merge.custom.implementation.classes", "mergers are not loaded", _MERGERS),
    _refused("hoodie.record.merge.strategy.id", "the merge mode decides", hint=_BY_MODE),
    _refused("hoodie.write.record.merge.strategy.id", "the merge mode decides", hint=_BY_MODE),
    _refused("hoodie.datasource.write.record.merger.strategy", "the merge mode decides", hint=_BY_MODE),
    _refused("hoodie.compaction.record.merger.strategy", "the merge mode decides", hint=_BY_MODE),
    _refused("hoodie.write.merge.handle.class", _NOT_MERGED_SO, _MERGE_HANDLES),
    _refused("hoodie.write.concat.handle.class", _NOT_MERGED_SO, (_IO + "hoodieconcathandle",)),
    _refused("hoodie.compact.merge.handle.class", _NOT_MERGED_SO, _MERGE_HANDLES, by=Phase.WRITE),
    _refused(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        "keys and partition paths of times have one form",
        _FALSE,
    ),
    _refused("hoodie.keygen.datetime.parser.class", "times are parsed by Hudi's own parser", _PARSERS),
    _refused("hoodie.deltastreamer.keygen.datetime.parser.class", "times are parsed by Hudi's own parser", _PARSERS),
    _refused("hoodie.datasource.write.slash.separated.date.partitioning", "dates are one folder each", _FALSE),
    _refused("hoodie.allow.operation.metadata.field", "rows do not tell their operation", _FALSE),
    _refused("hoodie.write.schema", _ONE_SCHEMA),
    _refused(
        "hoodie.datasource.write.reconcile.schema",
        _ONE_SCHEMA,
        _FALSE,
        hint="set hoodie.write.set.null.for.missing.columns=true where rows lack columns",
    ),
    _refused(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        "columns that the rows lack stay in the table",
        _FALSE,
    ),
    _refused(
        "hoodie.static.overwrite.partition.paths",
        "an overwrite replaces the partitions of its rows",
        hint="delete the other partitions with --operation delete_partition",
    ),
    _refused("hoodie.precommit.validators", "validators are not run", warned=Phase.WRITE),
    _refused("hoodie.prewrite.validators", "validators are not run"),
    _refused(
        "hoodie.write.lock.conflict.resolution.strategy", "conflicts are found by Hudi's own strategies", _RESOLUTIONS
    ),
    _refused("hoodie.index.class", "indexes of users are not loaded", hint="set hoodie.index.type"),
    _refused(
        "hoodie.fileid.prefix.provider.class",
        "file ids are random",
        ("org.apache.hudi.table.randomfileidprefixprovider",),
    ),
    _refused(
        "hoodie.compaction.plan.generator",
        "plans are made by the rules of Hudi's own generator",
        ("org.apache.hudi.table.action.compact.plan.generators.hoodiecompactionplangenerator",),
        by=Phase.COMPACTION,
    ),
    # Another table.
    _refused(
        "hoodie.metaserver.enabled",
        "the timeline is that in the table's folder",
        _FALSE,
        by=_EVERYWHERE,
        hint=_SERVICE_HINT,
    ),
    _refused("hoodie.bootstrap.base.path", "tables are not bootstrapped"),
    _refused("hoodie.table.base.file.format", "base files are parquet", ("parquet",)),
    _refused("hoodie.base.file.format", "base files are parquet", ("parquet",)),
    _refused("hoodie.table.ro.file.format", "base files are parquet", ("parquet",)),
    _refused("hoodie.table.log.file.format", "log files have Hudi's own format", ("hoodie_log",)),
    _refused("hoodie.table.rt.file.format", "log files have Hudi's own format", ("hoodie_log",)),
    _refused("hoodie.table.multiple.base.file.formats.enable", "base files are parquet", _FALSE),
    _refused("hoodie.table.format", "tables have Hudi's own format", ("native",)),
    _refused("hoodie.archivelog.folder", "a new table has the archive where its version has it", ("archived",)),
    _refused("hoodie.timeline.history.path", "a new table has the archive where its version has it", ("history",)),
    _refused("hoodie.timeline.path", "a new table has the timeline where its version has it", ("timeline",)),
    # Beside the table.
    _warned("hoodie.datasource.hive_sync.enable", _SYNC, _COMMITS),
    _warned("hoodie.datasource.meta.sync.enable", _SYNC, _COMMITS),
    _warned("hoodie.write.commit.callback.on", "nobody is called after a commit", _COMMITS),
    _warned("hoodie.client.init.callback.classes", "no callback is run", _EVERYWHERE, ()),
    _warned("hoodie.metrics.on", "no metrics are sent", _EVERYWHERE),
    _warned("hoodie.metadata.metrics.enable", "no metrics are sent", _EVERYWHERE),
    _warned("hoodie.errortable.enable", f"there is no error table: {_FAILED_ROWS}", Phase.INGEST),
    _warned("hoodie.write.ignore.failed", _FAILED_ROWS, Phase.INGEST),
    _warned("hoodie.aws.access.key", _AWS, _EVERYWHERE, (), is_secret=True),
    _warned("hoodie.aws.secret.key", _AWS, _EVERYWHERE, (), is_secret=True),
    _warned("hoodie.aws.session.token", _AWS, _EVERYWHERE, (), is_secret=True),
    _warned("hoodie.aws.role.arn", _AWS, _EVERYWHERE, (), is_secret=True),
    # Other services, and services that do more.
    _warned("hoodie.log.compaction.inline", "log compactions are not planned", Phase.INGEST),
    _warned("hoodie.log.compaction.enable", "log compactions are not planned", _COMMITS | Phase.COMPACTION),
    _warned("hoodie.metadata.log.compaction.enable", "the metadata table has no log compactions", _COMMITS),
    _warned("hoodie.partition.ttl.inline", "no partition is deleted for its age", Phase.INGEST),
    _warned("hoodie.prewrite.cleaner.policy", "no clean precedes a write", Phase.INGEST, ("none",)),
    _warned(
        "hoodie.archive.merge.enable", "archive files of table version 6 are not merged", Phase.ARCHIVE | Phase.INGEST
    ),
    _warned("hoodie.table.service.manager.enabled", _SERVICES_HERE, _PLANS | _COMMITS | Phase.CLEAN),
    _warned("hoodie.metadata.table.service.manager.enabled", _SERVICES_HERE, _COMMITS),
    _warned("hoodie.rollback.instant.backup.enabled", _KEPT, _ROLLBACKS),
    _warned(
        "hoodie.metadata.max.deltacommits.when_pending",
        "no commit fails because the metadata table has many delta commits",
        _COMMITS,
        (),
    ),
    _warned(
        "hoodie.clustering.updates.strategy",
        "a write to file groups of a pending plan is refused",
        Phase.INGEST,
        (_REJECTING,),
    ),
    _warned(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "a write to file groups of a pending plan is refused",
        Phase.INGEST,
    ),
    _warned(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        "a group gives way to a write that changes it, and to no other one",
        Phase.WRITE,
    ),
    _warned(
        "hoodie.allow.empty.commit",
        "a write without rows makes no commit, and one that finds no row to change makes one",
        Phase.INGEST,
        (),
    ),
    _warned("hoodie.write.track.event.time.watermark", "commits do not tell event times", Phase.INGEST),
    # Indexes.
    _warned("hoodie.metadata.index.drop", "no index is dropped", _COMMITS, ()),
    _warned("hoodie.datasource.write.secondarykey.column", NOT_MADE, Phase.INGEST, ()),
    _warned("hoodie.metadata.index.secondary.column", NOT_MADE, Phase.INGEST, ()),
    _warned("hoodie.metadata.index.expression.column", NOT_MADE, Phase.INGEST, ()),
    # The form of files.
    _warned(
        "hoodie.layout.optimize.curve.build.method",
        "a curve is built over equal shares of the rows, which a sample of each group tells (as with SAMPLE)",
        Phase.WRITE,
        ("sample",),
    ),
    _warned(
        "hoodie.record.size.estimator.class",
        "record sizes are the averages of the newest commits",
        Phase.INGEST,
        ("org.apache.hudi.estimator.averagerecordsizeestimator",),
    ),
    _warned("hoodie.parquet.dictionary.enabled", "columns have dictionaries where these are smaller", _COMMITS, _TRUE),
    _warned(
        "hoodie.parquet.outputtimestamptype",
        "timestamps have the unit that the table's schema says",
        _COMMITS,
        ("timestamp_micros",),
    ),
    _warned("hoodie.parquet.writelegacyformat.enabled", "decimals and lists have the newer form", _COMMITS),
    _warned("hoodie.parquet.write.config.injector.class", _OWN_WRITER, _COMMITS, ()),
    _warned(
        "hoodie.parquet.spark.row.write.support.class",
        _OWN_WRITER,
        _COMMITS,
        (_SUPPORT + "hoodierowparquetwritesupport",),
    ),
    _warned("hoodie.avro.write.support.class", _OWN_WRITER, _COMMITS, ("org.apache.hudi.avro.hoodieavrowritesupport",)),
    IndexSwitch("hoodie.metadata.record.index.enable", "record_index", makes=True),
    IndexSwitch("hoodie.metadata.global.record.level.index.enable", "record_index", makes=True),
    IndexSwitch("hoodie.metadata.record.level.index.enable", "record_index", makes=True),
    IndexSwitch("hoodie.metadata.index.bloom.filter.enable", "bloom_filters", makes=True),
    IndexSwitch("hoodie.metadata.index.expression.enable", "expr_index_"),
    IndexSwitch("hoodie.metadata.index.secondary.enable", "secondary_index_"),
)
