"""Keys of Hudi that are of no consequence here, by the reason: the commands take them, and do nothing else for them.

With the options and `not_honoured`, these are all keys of Apache Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0; a key that is not
among them may be misspelt. `scripts/list_hudi_keys.py` reads the keys of the four releases from their Spark bundles.
"""

from .option import Idle

_BY_REASON: dict[str, str] = {
    "Only readers of tables read it.": """
hoodie.bootstrap.data.queries.only hoodie.bucket.index.query.pruning hoodie.cdc.file.group.iterator.memory.spill.bytes
hoodie.datasource.merge.type hoodie.datasource.query.incremental.format hoodie.datasource.query.type
hoodie.datasource.read.begin.instanttime hoodie.datasource.read.create.filesystem.relation
hoodie.datasource.read.end.instanttime hoodie.datasource.read.extract.partition.values.from.path
hoodie.datasource.read.file.index.list.partitions.from.catalog hoodie.datasource.read.file.index.listing.mode
hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
hoodie.datasource.read.file.index.optimize.listing.using.path.filter
hoodie.datasource.read.incr.fallback.fulltablescan.enable hoodie.datasource.read.incr.filters
hoodie.datasource.read.incr.path.glob hoodie.datasource.read.incr.skip_cluster
hoodie.datasource.read.incr.skip_compact hoodie.datasource.read.incr.table.version
hoodie.datasource.read.partition.value.extractor.enabled hoodie.datasource.read.paths
hoodie.datasource.read.schema.use.end.instanttime hoodie.datasource.read.streaming.table.version
hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
hoodie.datasource.read.table.valued.function.timeline.relation
hoodie.datasource.read.table.valued.function.timeline.relation.archived
hoodie.datasource.read.use.new.parquet.file.format hoodie.datasource.streaming.startOffset hoodie.datasource.view.type
hoodie.enable.data.skipping hoodie.file.group.reader.enabled hoodie.file.index.cache.spillable.mem
hoodie.file.index.cache.use.spillable.map hoodie.file.index.enable hoodie.fileIndex.dataSkippingFailureMode
hoodie.incremental.use.database hoodie.metadata.fallback.enable
hoodie.metadata.index.column.stats.inMemory.projection.threshold
hoodie.metadata.index.column.stats.processing.mode.override hoodie.query.as.ro.table hoodie.read.blob.inline.mode
hoodie.read.columns.set hoodie.read.timeline.holes.resolution.policy hoodie.realtime.merge.skip
hoodie.schema.cache.enable hoodie.schema.internal.querySchema hoodie.spark.polaris.catalog.class hoodie.support.payload
hoodie.tablePath hoodie.valid.commits.list
""",
    "It says how many tasks Spark or Flink runs, or where they keep data; files are sized by bytes.": """
hoodie.archive.delete.parallelism hoodie.bloom.index.bucketized.checking
hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism hoodie.bloom.index.fileid.key.sorting.enable
hoodie.bloom.index.input.storage.level hoodie.bloom.index.keys.per.bucket hoodie.bloom.index.parallelism
hoodie.bloom.index.use.caching hoodie.bucket.index.remote.partitioner.enable hoodie.bulkinsert.shuffle.parallelism
hoodie.clean.optimize.using.local.engine.context hoodie.clean.parallelism hoodie.cleaner.parallelism
hoodie.clustering.group.read.parallelism hoodie.clustering.plan.generation.use.local.engine.context
hoodie.delete.shuffle.parallelism hoodie.expression.index.range.metadata.storage.level hoodie.file.listing.parallelism
hoodie.finalize.write.parallelism hoodie.global.index.reconcile.parallelism hoodie.global.simple.index.parallelism
hoodie.insert.shuffle.parallelism hoodie.markers.delete.parallelism hoodie.metadata.index.bloom.filter.parallelism
hoodie.metadata.index.column.stats.parallelism hoodie.metadata.index.expression.parallelism
hoodie.metadata.index.partition.stats.parallelism hoodie.metadata.index.secondary.parallelism
hoodie.metadata.max.init.parallelism hoodie.metadata.range.repartition.random.seed
hoodie.metadata.range.repartition.sampling.fraction hoodie.metadata.range.repartition.target.records.per.partition
hoodie.metadata.record.preparation.parallelism hoodie.metadata.repartition.default.partitions
hoodie.metadata.repartition.min.partitions.threshold
hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor hoodie.metadata.streaming.write.enabled
hoodie.record.index.input.storage.level hoodie.record.index.use.caching hoodie.release.resource.on.completion.enable
hoodie.rollback.parallelism hoodie.simple.index.input.storage.level hoodie.simple.index.parallelism
hoodie.simple.index.use.caching hoodie.upsert.shuffle.parallelism hoodie.write.status.storage.level
hoodie.write.tagged.record.storage.level
""",
    "It says how Hudi's processes use memory and disks; here hudi.services.memory.per.task does.": """
hoodie.common.diskmap.compression.enabled hoodie.common.spillable.diskmap.type hoodie.hfile.block.cache.enabled
hoodie.hfile.block.cache.size hoodie.hfile.block.cache.ttl.minutes hoodie.memory.compaction.fraction
hoodie.memory.compaction.max.size hoodie.memory.dfs.buffer.max.size hoodie.memory.merge.fraction
hoodie.memory.merge.max.size hoodie.memory.spillable.map.path hoodie.metadata.file.cache.max.size.mb
hoodie.metadata.max.reader.buffer.size hoodie.metadata.max.reader.memory hoodie.metadata.spillable.map.path
hoodie.write.executor.disruptor.buffer.limit.bytes hoodie.write.executor.disruptor.wait.strategy
hoodie.write.executor.type
""",
    "It is about parts of Hudi's processes that this program does not have.": """
_hoodie.hfile.use.native.reader _hoodie.optimistic.consistency.guard.enable _hoodie.time.generator.reuse.enable
hoodie.block.writes.on.speculative.execution hoodie.consistency.check.enabled
hoodie.consistency.check.initial_interval_ms hoodie.consistency.check.max_checks
hoodie.consistency.check.max_interval_ms hoodie.embed.timeline.server hoodie.embed.timeline.server.async
hoodie.embed.timeline.server.gzip hoodie.embed.timeline.server.port hoodie.embed.timeline.server.reuse.enabled
hoodie.embed.timeline.server.threads hoodie.fail.job.on.duplicate.data.file.detection
hoodie.filesystem.operation.retry.enable hoodie.filesystem.operation.retry.exceptions
hoodie.filesystem.operation.retry.initial_interval_ms hoodie.filesystem.operation.retry.max_interval_ms
hoodie.filesystem.operation.retry.max_numbers hoodie.filesystem.remote.backup.view.enable
hoodie.filesystem.view.incr.timeline.sync.enable hoodie.filesystem.view.remote.host
hoodie.filesystem.view.remote.port hoodie.filesystem.view.remote.retry.enable
hoodie.filesystem.view.remote.retry.exceptions hoodie.filesystem.view.remote.retry.initial_interval_ms
hoodie.filesystem.view.remote.retry.max_interval_ms hoodie.filesystem.view.remote.retry.max_numbers
hoodie.filesystem.view.remote.timeout.secs hoodie.filesystem.view.rocksdb.base.path
hoodie.filesystem.view.secondary.type hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction
hoodie.filesystem.view.spillable.clustering.mem.fraction hoodie.filesystem.view.spillable.compaction.mem.fraction
hoodie.filesystem.view.spillable.dir hoodie.filesystem.view.spillable.log.compaction.mem.fraction
hoodie.filesystem.view.spillable.mem hoodie.filesystem.view.spillable.replaced.mem.fraction
hoodie.filesystem.view.type hoodie.instant_state.timeline_server_based.enabled
hoodie.instant_state.timeline_server_based.force_refresh.request.number hoodie.io.factory.class
hoodie.memory.writestatus.failure.fraction hoodie.optimistic.consistency.guard.sleep_time_ms
hoodie.sensitive.config.keys hoodie.storage.class hoodie.writestatus.class
""",
    "Hudi's markers have several forms, which rollbacks of Hudi and of this program all read; here each is a file.": """
hoodie.markers.timeline_server_based.batch.interval_ms hoodie.markers.timeline_server_based.batch.num_threads
hoodie.write.markers.type
""",
    "Only Flink, or a streaming writer, reads it.": """
hoodie.datasource.compaction.async.enable hoodie.datasource.write.streaming.checkpoint.identifier
hoodie.datasource.write.streaming.disable.compaction hoodie.datasource.write.streaming.ignore.failed.batch
hoodie.datasource.write.streaming.retry.count hoodie.datasource.write.streaming.retry.interval.ms
hoodie.parquet.flink.rowdata.write.support.class hoodie.parquet.write.utc-timezone.enabled
hoodie.precommit.validators.streaming.offset.tolerance.percentage hoodie.write.buffer.limit.bytes
hoodie.write.buffer.record.cache.limit hoodie.write.buffer.record.sampling.rate
""",
    "Only Spark SQL reads it.": """
_hoodie.spark.sql.merge.into.prepped _hoodie.spark.sql.writes.prepped hoodie.expression.index.function
hoodie.expression.index.type hoodie.index.name hoodie.metadata.index.expression.options
hoodie.spark.sql.insert.into.operation hoodie.spark.sql.merge.into.partial.updates
hoodie.spark.sql.optimized.writes.enable hoodie.sql.bulk.insert.enable hoodie.sql.insert.mode hoodie.table.create.schema
""",
    "Hudi's code sets it for itself.": """
_hoodie.merger.payload.class _hoodie.metadata.ignore.spurious.deletes _hoodie.record.key.gen.instant.time
_hoodie.record.key.gen.partition.id _hoodie.writes.fileid.encoding hoodie.auto.commit hoodie.avro.schema
hoodie.base.path hoodie.bulkinsert.are.partitioner.records.sorted hoodie.bulkinsert.overwrite.operation.type
hoodie.bulkinsert.schema.ddl hoodie.instant.time hoodie.internal.schema hoodie.internal.spark.streaming.batch.id
hoodie.internal.sql.merge.into.writes hoodie.internal.write.schema.canonicalize hoodie.is.update.record.for.mor
hoodie.payload.record.schema hoodie.storage.layout.partitioner.class hoodie.storage.layout.type
hoodie.write.application.id hoodie.write.lock.app_id
""",
    "It is a property of a table, a file's name or the beginning of other keys, and no option of Hudi's writers.": """
hoodie.metadata hoodie.metaserver hoodie.metrics hoodie.properties hoodie.properties.backup hoodie.properties.updated
hoodie.table.checksum hoodie.table.index.defs.path hoodie.table.initial.version hoodie.table.legacy.payload.class
hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight hoodie.table.secondary.indexes.metadata
hoodie.table.service.manager hoodie.table.version hoodie.timeline.layout.version hoodie.vector.columns
hoodie.metricscompaction.log.blocks.on
""",
    "Hudi does not read it any more, or never did.": """
hoodie.layout.optimize.data.skipping.enable hoodie.layout.optimize.enable hoodie.skip.default.partition.validation
hoodie.write.lock.zookeeper.port
""",
    "It says how a catalog is told; see `hoodie.datasource.meta.sync.enable`.": """
hoodie.datasource.hive_sync.assume_date_partitioning hoodie.datasource.hive_sync.auto_create_database
hoodie.datasource.hive_sync.base_file_format hoodie.datasource.hive_sync.batch_num
hoodie.datasource.hive_sync.bucket_sync hoodie.datasource.hive_sync.bucket_sync_spec
hoodie.datasource.hive_sync.create_managed_table hoodie.datasource.hive_sync.database
hoodie.datasource.hive_sync.filter_pushdown_enabled hoodie.datasource.hive_sync.filter_pushdown_max_size
hoodie.datasource.hive_sync.ignore_exceptions hoodie.datasource.hive_sync.jdbcurl
hoodie.datasource.hive_sync.metastore.uris hoodie.datasource.hive_sync.mode
hoodie.datasource.hive_sync.omit_metadata_fields hoodie.datasource.hive_sync.partition_extractor_class
hoodie.datasource.hive_sync.partition_fields hoodie.datasource.hive_sync.password
hoodie.datasource.hive_sync.recreate_table_on_error hoodie.datasource.hive_sync.schema_string_length_thresh
hoodie.datasource.hive_sync.serde_properties hoodie.datasource.hive_sync.skip_ro_suffix
hoodie.datasource.hive_sync.support_timestamp hoodie.datasource.hive_sync.sync_as_datasource
hoodie.datasource.hive_sync.sync_comment hoodie.datasource.hive_sync.table hoodie.datasource.hive_sync.table.strategy
hoodie.datasource.hive_sync.table_properties hoodie.datasource.hive_sync.use_jdbc
hoodie.datasource.hive_sync.use_pre_apache_input_format hoodie.datasource.hive_sync.use_spark_catalog
hoodie.datasource.hive_sync.username hoodie.datasource.meta.sync.base.path
hoodie.datasource.meta_sync.condition.sync hoodie.datasource.partition_extractor_class
hoodie.datasource.write.table.name hoodie.meta.sync.client.tool.class hoodie.meta.sync.decode_partition
hoodie.meta.sync.incremental hoodie.meta.sync.metadata_file_listing hoodie.meta.sync.no_partition_metadata
hoodie.meta.sync.sync_snapshot_with_table_name hoodie.meta.sync.touch.partitions.enabled
hoodie.meta_sync.global.replicate.timestamp hoodie.meta_sync.spark.version hoodie.table.partition_extractor_class
""",
    "It belongs to an index that `write` refuses by `hoodie.index.type` or `hoodie.index.bucket.engine`.": """
hoodie.bucket.index.partition.rule.type hoodie.hbase.index.update.partition.path
hoodie.index.hbase.bucket.number hoodie.index.hbase.desired_puts_time_in_secs hoodie.index.hbase.dynamic_qps
hoodie.index.hbase.get.batch.size hoodie.index.hbase.kerberos.user.keytab hoodie.index.hbase.kerberos.user.principal
hoodie.index.hbase.master.kerberos.principal hoodie.index.hbase.max.qps.fraction
hoodie.index.hbase.max.qps.per.region.server hoodie.index.hbase.min.qps.fraction hoodie.index.hbase.put.batch.size
hoodie.index.hbase.put.batch.size.autocompute hoodie.index.hbase.qps.allocator.class hoodie.index.hbase.qps.fraction
hoodie.index.hbase.regionserver.kerberos.principal hoodie.index.hbase.rollback.sync
hoodie.index.hbase.security.authentication hoodie.index.hbase.sleep.ms.for.get.batch
hoodie.index.hbase.sleep.ms.for.put.batch hoodie.index.hbase.table hoodie.index.hbase.zk.connection_timeout_ms
hoodie.index.hbase.zk.session_timeout_ms hoodie.index.hbase.zknode.path hoodie.index.hbase.zkpath.qps_root
hoodie.index.hbase.zkport hoodie.index.hbase.zkquorum hoodie.logfile.to.parquet.compression.ratio
""",
    "It is about base files that are not parquet, which are refused.": """
hoodie.hfile.block.size hoodie.hfile.compression.algorithm hoodie.hfile.max.file.size
hoodie.hfile.writes.allow.duplicates hoodie.lance.max.file.size hoodie.lance.read.allocator.size.bytes
hoodie.lance.read.metadata.allocator.size.bytes hoodie.lance.write.allocator.size.bytes
hoodie.lance.write.flush.byte.watermark hoodie.orc.block.size hoodie.orc.compression.codec hoodie.orc.max.file.size
hoodie.orc.stripe.size
""",
    "The schema history of a table is always followed.": """
hoodie.schema.on.read.enable
""",
    "It is about bootstraps, which Hudi makes; their source files are never deleted.": """
hoodie.bootstrap.full.input.provider hoodie.bootstrap.index.class hoodie.bootstrap.index.enable
hoodie.bootstrap.index.type hoodie.bootstrap.mode.selector hoodie.bootstrap.mode.selector.regex
hoodie.bootstrap.mode.selector.regex.mode hoodie.bootstrap.parallelism hoodie.bootstrap.partitionpath.translator.class
hoodie.clean.delete.bootstrap.base.file hoodie.cleaner.delete.bootstrap.base.file
""",
    "It belongs to `hoodie.errortable.enable`, of which commands warn.": """
hoodie.errortable.base.path hoodie.errortable.insert.shuffle.parallelism hoodie.errortable.source.rdd.persist
hoodie.errortable.target.table.name hoodie.errortable.upsert.shuffle.parallelism
hoodie.errortable.validate.recordcreation.enable hoodie.errortable.validate.targetschema.enable
hoodie.errortable.write.class hoodie.errortable.write.failure.strategy hoodie.errortable.write.union.enable
""",
    "It belongs to another key, which is refused, or of which commands warn.": """
hoodie.archive.merge.files.batch.size hoodie.archive.merge.small.file.limit.bytes
hoodie.compaction.partition.path.regex hoodie.log.compaction.blocks.threshold
hoodie.metadata.log.compaction.blocks.threshold hoodie.metadata.table.service.manager.actions
hoodie.metaserver.connect.retries hoodie.metaserver.connect.retry.delay hoodie.metaserver.uris
hoodie.partition.ttl.management.strategy.type hoodie.payload.event.time.field
hoodie.precommit.validators.equality.sql.queries hoodie.precommit.validators.failure.policy
hoodie.precommit.validators.inequality.sql.queries hoodie.precommit.validators.single.value.sql.queries
hoodie.rollback.instant.backup.dir hoodie.table.service.manager.actions
hoodie.table.service.manager.connection.retries hoodie.table.service.manager.connection.retry.delay.sec
hoodie.table.service.manager.connection.timeout.sec hoodie.table.service.manager.deploy.extra.params
hoodie.table.service.manager.deploy.parallelism hoodie.table.service.manager.deploy.queue
hoodie.table.service.manager.deploy.resources hoodie.table.service.manager.deploy.username
hoodie.table.service.manager.execution.engine hoodie.table.service.manager.uris
hoodie.write.partial.update.unavailable.value
""",
    "It says how Hudi waits for a lock; here `hoodie.write.lock.wait_time_ms` is the whole time.": """
hoodie.write.lock.client.num_retries hoodie.write.lock.client.wait_time_ms_between_retry
hoodie.write.lock.max_wait_time_ms_between_retry hoodie.write.lock.num_retries
""",
    "It belongs to a lock provider that is refused.": """
hoodie.write.lock.heartbeat_interval_ms hoodie.write.lock.hivemetastore.database
hoodie.write.lock.hivemetastore.table hoodie.write.lock.hivemetastore.uris
""",
    "The lock that is set is taken, on every store that can hold it, whatever this says.": """
hoodie.auto.adjust.lock.configs hoodie.fs.atomic_creation.support
""",
    "Conflicts, and changes of the schema, are always found, before a write and at its commit.": """
hoodie.avro.schema.validate hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
hoodie.write.concurrency.async.conflict.detector.period_ms
hoodie.write.concurrency.early.conflict.check.commit.conflict
hoodie.write.concurrency.early.conflict.detection.enable
hoodie.write.concurrency.early.conflict.detection.strategy
hoodie.write.concurrency.schema.conflict.resolution.enable
""",
    "It makes an index faster or slower, and finds the same rows.": """
hoodie.bloom.index.prune.by.ranges hoodie.bloom.index.use.metadata hoodie.bloom.index.use.treebased.filter
""",
    "It says how Hudi reads log files, with the same rows as the result.": """
hoodie.compaction.lazy.block.read hoodie.compaction.reverse.log.read hoodie.merge.use.record.positions
hoodie.metadata.optimized.log.blocks.scan.enable hoodie.optimized.log.blocks.scan.enable
""",
    "What it asks for is always done: every row that is written is counted and compared, or a check is made.": """
hoodie.merge.data.validation.enabled hoodie.metadata.record.index.enable.validation.on.initialization
hoodie.rollback.avoid.duplicate.plan hoodie.write.complex.keygen.validation.enable hoodie.write.merge.handle.fallback
""",
    "What follows a commit may fail, and the commit stays; `hoodie.fail.writes.on.inline.table.service.exception` "
    "says how that is told.": """
hoodie.fail.on.timeline.archiving hoodie.metadata.write.fail.on.table.service.failures
hoodie.post.commit.failures.ignored hoodie.write.can.ignore.post.commit.failures
""",
    "The clean or the archival follows the write in both cases, and every service looks at all partitions.": """
hoodie.archive.async hoodie.clean.async hoodie.clean.async.enabled hoodie.table.services.incremental.enabled
""",
    "An archival goes in rounds of its own size.": """
hoodie.archive.limit.instants
""",
    "No command changes the version of a table.": """
hoodie.write.auto.upgrade
""",
    "Partitions are found by the metadata table or by their metafiles.": """
hoodie.assume.date.partitioning hoodie.metadata.dir.filter.regex
""",
    "The metadata table is made with the first write, and changed only under the table's lock.": """
hoodie.metadata.auto.initialize hoodie.metadata.write.concurrency.mode
""",
    "No index is made or deleted by the way: see `hoodie.metadata.record.index.enable`.": """
hoodie.metadata.auto.delete.partitions hoodie.metadata.index.async
hoodie.metadata.index.bloom.filter.column.list
hoodie.metadata.index.check.timeout.seconds
hoodie.metadata.record.level.index.defer.init
""",
    "It is about the form of the metadata table's files, which readers take in every form.": """
hoodie.metadata.bloom.filter.dynamic.max.entries hoodie.metadata.bloom.filter.enable hoodie.metadata.bloom.filter.fpp
hoodie.metadata.bloom.filter.num.entries hoodie.metadata.bloom.filter.type hoodie.metadata.max.logfile.size
""",
    "Files of other schemas are decoded, whatever this says, and not copied.": """
hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable
""",
    "The sample has 65,536 rows of each group: see `hoodie.layout.optimize.curve.build.method`.": """
hoodie.layout.optimize.build.curve.sample.size
""",
    "Each write makes log files of its own, without positions of records; readers merge them by key.": """
hoodie.write.record.positions
""",
    "Files are closed by the bytes that are stored.": """
hoodie.parquet.compression.ratio
""",
    "The field ids of columns stay as they are.": """
hoodie.parquet.field_id.write.enabled
""",
    "Rows have one way to files.": """
hoodie.datasource.write.row.writer.enable
""",
    "It is the only choice.": """
hoodie.time.generator.type
""",
}
"""The keys by the reason. A key that belongs to a feature is of no consequence where that feature is refused."""

_PREFIXES: dict[str, str] = {
    "hoodie.aws.": "It is about the services of AWS that Hudi tells of tables.",
    "hoodie.deltastreamer.": "Only Hudi Streamer reads it.",
    "hoodie.metrics.": "It says how metrics are sent; see `hoodie.metrics.on`.",
    "hoodie.partition.ttl.strategy.": "It belongs to `hoodie.partition.ttl.inline`, of which commands warn.",
    "hoodie.record.merge.property.": "It is a property of a table: its merge rule.",
    "hoodie.streamer.": "Only Hudi Streamer reads it.",
    "hoodie.write.commit.callback.": "It says how a callback is called; see `hoodie.write.commit.callback.on`.",
}
"""Every other key with one of these prefixes is known: its rest is a name that the operator or a plug-in gave."""

ALL = [Idle(key, reason) for reason, text in _BY_REASON.items() for key in text.split()]
ALL += [Idle(prefix, reason) for prefix, reason in _PREFIXES.items()]
