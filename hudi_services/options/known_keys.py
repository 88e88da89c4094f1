"""The configuration keys of Apache Hudi 0.15.0, 1.0.2 and 1.2.0: a key that is not among them may be misspelt.

They were read from the constant pools of the config classes in the three Spark bundles.
"""

PREFIXES = (
    "hoodie.aws.",
    "hoodie.deltastreamer.",
    "hoodie.keygen.timebased.",
    "hoodie.metrics.",
    "hoodie.partition.ttl.strategy.",
    "hoodie.record.merge.property.",
    "hoodie.streamer.",
    "hoodie.write.commit.callback.",
)
"""Every key with one of these prefixes is known: its rest is a name that the operator or a plug-in gave."""

_TEXT = """
_hoodie.hfile.use.native.reader _hoodie.metadata.ignore.spurious.deletes _hoodie.optimistic.consistency.guard.enable
_hoodie.record.size.estimator.max.commits _hoodie.spark.sql.merge.into.prepped _hoodie.spark.sql.writes.prepped
_hoodie.time.generator.reuse.enable _hoodie.writes.fileid.encoding hoodie.allow.empty.commit
hoodie.allow.operation.metadata.field hoodie.archive.async hoodie.archive.automatic hoodie.archive.beyond.savepoint
hoodie.archive.block.on.latest.clean.ectr hoodie.archive.delete.parallelism hoodie.archive.merge.enable
hoodie.archive.merge.files.batch.size hoodie.archive.merge.small.file.limit.bytes hoodie.archivelog.folder
hoodie.assume.date.partitioning hoodie.auto.adjust.lock.configs hoodie.auto.commit hoodie.avro.schema
hoodie.avro.schema.validate hoodie.avro.write.support.class hoodie.base.file.format hoodie.base.path
hoodie.block.writes.on.speculative.execution hoodie.bloom.index.bucketized.checking
hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism hoodie.bloom.index.fileid.key.sorting.enable
hoodie.bloom.index.filter.dynamic.max.entries hoodie.bloom.index.filter.type hoodie.bloom.index.input.storage.level
hoodie.bloom.index.keys.per.bucket hoodie.bloom.index.parallelism hoodie.bloom.index.prune.by.ranges
hoodie.bloom.index.update.partition.path hoodie.bloom.index.use.caching hoodie.bloom.index.use.metadata
hoodie.bloom.index.use.treebased.filter hoodie.bootstrap.base.path hoodie.bootstrap.data.queries.only
hoodie.bootstrap.full.input.provider hoodie.bootstrap.index.class hoodie.bootstrap.index.enable
hoodie.bootstrap.index.type hoodie.bootstrap.mode.selector hoodie.bootstrap.mode.selector.regex
hoodie.bootstrap.mode.selector.regex.mode hoodie.bootstrap.parallelism hoodie.bootstrap.partitionpath.translator.class
hoodie.bucket.index.hash.field hoodie.bucket.index.max.num.buckets hoodie.bucket.index.merge.threshold
hoodie.bucket.index.min.num.buckets hoodie.bucket.index.num.buckets hoodie.bucket.index.partition.expressions
hoodie.bucket.index.partition.rule.type hoodie.bucket.index.query.pruning
hoodie.bucket.index.remote.partitioner.enable hoodie.bucket.index.split.threshold
hoodie.bulkinsert.are.partitioner.records.sorted hoodie.bulkinsert.overwrite.operation.type
hoodie.bulkinsert.schema.ddl hoodie.bulkinsert.shuffle.parallelism hoodie.bulkinsert.sort.mode
hoodie.bulkinsert.sort.suffix.record_key hoodie.bulkinsert.user.defined.partitioner.class
hoodie.bulkinsert.user.defined.partitioner.sort.columns hoodie.cdc.file.group.iterator.memory.spill.bytes
hoodie.clean.allow.multiple hoodie.clean.async hoodie.clean.async.enabled hoodie.clean.automatic
hoodie.clean.commits.retained hoodie.clean.delete.bootstrap.base.file hoodie.clean.failed.writes.policy
hoodie.clean.fileversions.retained hoodie.clean.hours.retained hoodie.clean.incremental.enabled
hoodie.clean.max.commits hoodie.clean.max.commits.to.clean hoodie.clean.multiple.enabled
hoodie.clean.optimize.using.local.engine.context hoodie.clean.parallelism hoodie.clean.partition.filter.regex
hoodie.clean.partition.filter.selected hoodie.clean.policy hoodie.clean.trigger.max.commits
hoodie.clean.trigger.strategy hoodie.cleaner.commits.retained hoodie.cleaner.delete.bootstrap.base.file
hoodie.cleaner.fileversions.retained hoodie.cleaner.hours.retained hoodie.cleaner.incremental.mode
hoodie.cleaner.parallelism hoodie.cleaner.partition.filter.regex hoodie.cleaner.partition.filter.selected
hoodie.cleaner.policy hoodie.cleaner.policy.failed.writes hoodie.client.heartbeat.interval_in_ms
hoodie.client.heartbeat.tolerable.misses hoodie.client.init.callback.classes hoodie.clustering.async.enabled
hoodie.clustering.async.max.commits hoodie.clustering.enable.expirations hoodie.clustering.execution.strategy.class
hoodie.clustering.expiration.threshold.mins hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution
hoodie.clustering.group.read.parallelism hoodie.clustering.inline hoodie.clustering.inline.max.commits
hoodie.clustering.max.parallelism hoodie.clustering.plan.generation.use.local.engine.context
hoodie.clustering.plan.partition.filter.mode hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable
hoodie.clustering.plan.strategy.class hoodie.clustering.plan.strategy.cluster.begin.partition
hoodie.clustering.plan.strategy.cluster.end.partition hoodie.clustering.plan.strategy.daybased.lookback.partitions
hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions
hoodie.clustering.plan.strategy.earliest.commit.to.cluster hoodie.clustering.plan.strategy.file.slices.sort.by
hoodie.clustering.plan.strategy.max.bytes.per.group hoodie.clustering.plan.strategy.max.num.groups
hoodie.clustering.plan.strategy.partition.regex.pattern hoodie.clustering.plan.strategy.partition.selected
hoodie.clustering.plan.strategy.single.group.clustering.enabled hoodie.clustering.plan.strategy.small.file.limit
hoodie.clustering.plan.strategy.sort.columns hoodie.clustering.plan.strategy.target.file.max.bytes
hoodie.clustering.rollback.pending.replacecommit.on.conflict hoodie.clustering.schedule.inline
hoodie.clustering.updates.strategy hoodie.combine.before.delete hoodie.combine.before.insert
hoodie.combine.before.upsert hoodie.commits.archival.batch hoodie.common.diskmap.compression.enabled
hoodie.common.spillable.diskmap.type hoodie.compact.inline hoodie.compact.inline.max.delta.commits
hoodie.compact.inline.max.delta.seconds hoodie.compact.inline.trigger.strategy hoodie.compact.merge.handle.class
hoodie.compact.schedule.inline hoodie.compaction.daybased.target.partitions hoodie.compaction.lazy.block.read
hoodie.compaction.logfile.num.threshold hoodie.compaction.logfile.size.threshold
hoodie.compaction.partition.path.regex hoodie.compaction.payload.class hoodie.compaction.plan.generator
hoodie.compaction.record.merger.strategy hoodie.compaction.reverse.log.read hoodie.compaction.strategy
hoodie.compaction.target.io hoodie.consistency.check.enabled hoodie.consistency.check.initial_interval_ms
hoodie.consistency.check.max_checks hoodie.consistency.check.max_interval_ms hoodie.copyonwrite.insert.auto.split
hoodie.copyonwrite.insert.split.size hoodie.copyonwrite.record.size.estimate hoodie.database.name
hoodie.datasource.clustering.async.enable hoodie.datasource.clustering.inline.enable
hoodie.datasource.compaction.async.enable hoodie.datasource.hive_sync.assume_date_partitioning
hoodie.datasource.hive_sync.auto_create_database hoodie.datasource.hive_sync.base_file_format
hoodie.datasource.hive_sync.batch_num hoodie.datasource.hive_sync.bucket_sync
hoodie.datasource.hive_sync.bucket_sync_spec hoodie.datasource.hive_sync.create_managed_table
hoodie.datasource.hive_sync.database hoodie.datasource.hive_sync.enable
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
hoodie.datasource.hive_sync.username hoodie.datasource.insert.dup.policy hoodie.datasource.merge.type
hoodie.datasource.meta.sync.base.path hoodie.datasource.meta.sync.enable hoodie.datasource.meta_sync.condition.sync
hoodie.datasource.overwrite.mode hoodie.datasource.partition_extractor_class
hoodie.datasource.query.incremental.format hoodie.datasource.query.type hoodie.datasource.read.begin.instanttime
hoodie.datasource.read.create.filesystem.relation hoodie.datasource.read.end.instanttime
hoodie.datasource.read.extract.partition.values.from.path
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
hoodie.datasource.write.commitmeta.key.prefix hoodie.datasource.write.drop.partition.columns
hoodie.datasource.write.hive_style_partitioning hoodie.datasource.write.insert.drop.duplicates
hoodie.datasource.write.keygenerator.class hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled
hoodie.datasource.write.keygenerator.type hoodie.datasource.write.operation
hoodie.datasource.write.partitionpath.field hoodie.datasource.write.partitionpath.urlencode
hoodie.datasource.write.partitions.to.delete hoodie.datasource.write.payload.class
hoodie.datasource.write.precombine.field hoodie.datasource.write.reconcile.schema
hoodie.datasource.write.record.merger.impls hoodie.datasource.write.record.merger.strategy
hoodie.datasource.write.recordkey.field hoodie.datasource.write.row.writer.enable
hoodie.datasource.write.schema.allow.auto.evolution.column.drop hoodie.datasource.write.secondarykey.column
hoodie.datasource.write.slash.separated.date.partitioning hoodie.datasource.write.storage.type
hoodie.datasource.write.streaming.checkpoint.identifier hoodie.datasource.write.streaming.disable.compaction
hoodie.datasource.write.streaming.ignore.failed.batch hoodie.datasource.write.streaming.retry.count
hoodie.datasource.write.streaming.retry.interval.ms hoodie.datasource.write.table.name
hoodie.datasource.write.table.type hoodie.delete.shuffle.parallelism hoodie.deltastreamer.keygen.datetime.parser.class
hoodie.deltastreamer.keygen.timebased.input.dateformat
hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex
hoodie.deltastreamer.keygen.timebased.input.timezone hoodie.deltastreamer.keygen.timebased.output.dateformat
hoodie.deltastreamer.keygen.timebased.output.timezone hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit
hoodie.deltastreamer.keygen.timebased.timestamp.type hoodie.deltastreamer.keygen.timebased.timezone
hoodie.deltastreamer.source.kafka.value.deserializer.class hoodie.embed.timeline.server
hoodie.embed.timeline.server.async hoodie.embed.timeline.server.gzip hoodie.embed.timeline.server.port
hoodie.embed.timeline.server.reuse.enabled hoodie.embed.timeline.server.threads hoodie.enable.data.skipping
hoodie.errortable.base.path hoodie.errortable.enable hoodie.errortable.insert.shuffle.parallelism
hoodie.errortable.source.rdd.persist hoodie.errortable.target.table.name hoodie.errortable.upsert.shuffle.parallelism
hoodie.errortable.validate.recordcreation.enable hoodie.errortable.validate.targetschema.enable
hoodie.errortable.write.class hoodie.errortable.write.failure.strategy hoodie.errortable.write.union.enable
hoodie.expression.index.function hoodie.expression.index.range.metadata.storage.level hoodie.expression.index.type
hoodie.fail.job.on.duplicate.data.file.detection hoodie.fail.on.timeline.archiving
hoodie.fail.writes.on.inline.table.service.exception hoodie.file.group.reader.enabled
hoodie.file.index.cache.spillable.mem hoodie.file.index.cache.use.spillable.map hoodie.file.index.enable
hoodie.file.listing.parallelism hoodie.fileid.prefix.provider.class hoodie.filesystem.operation.retry.enable
hoodie.filesystem.operation.retry.exceptions hoodie.filesystem.operation.retry.initial_interval_ms
hoodie.filesystem.operation.retry.max_interval_ms hoodie.filesystem.operation.retry.max_numbers
hoodie.filesystem.remote.backup.view.enable hoodie.filesystem.view.incr.timeline.sync.enable
hoodie.filesystem.view.remote.host hoodie.filesystem.view.remote.port hoodie.filesystem.view.remote.retry.enable
hoodie.filesystem.view.remote.retry.exceptions hoodie.filesystem.view.remote.retry.initial_interval_ms
hoodie.filesystem.view.remote.retry.max_interval_ms hoodie.filesystem.view.remote.retry.max_numbers
hoodie.filesystem.view.remote.timeout.secs hoodie.filesystem.view.rocksdb.base.path
hoodie.filesystem.view.secondary.type hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction
hoodie.filesystem.view.spillable.clustering.mem.fraction hoodie.filesystem.view.spillable.compaction.mem.fraction
hoodie.filesystem.view.spillable.dir hoodie.filesystem.view.spillable.log.compaction.mem.fraction
hoodie.filesystem.view.spillable.mem hoodie.filesystem.view.spillable.replaced.mem.fraction
hoodie.filesystem.view.type hoodie.finalize.write.parallelism hoodie.fs.atomic_creation.support
hoodie.global.index.reconcile.parallelism hoodie.global.simple.index.parallelism
hoodie.hbase.index.update.partition.path hoodie.hfile.block.cache.enabled hoodie.hfile.block.cache.size
hoodie.hfile.block.cache.ttl.minutes hoodie.hfile.block.size hoodie.hfile.compression.algorithm
hoodie.hfile.max.file.size hoodie.hfile.writes.allow.duplicates hoodie.index.bloom.fpp hoodie.index.bloom.num_entries
hoodie.index.bucket.engine hoodie.index.class hoodie.index.hbase.bucket.number
hoodie.index.hbase.desired_puts_time_in_secs hoodie.index.hbase.dynamic_qps hoodie.index.hbase.get.batch.size
hoodie.index.hbase.kerberos.user.keytab hoodie.index.hbase.kerberos.user.principal
hoodie.index.hbase.master.kerberos.principal hoodie.index.hbase.max.qps.fraction
hoodie.index.hbase.max.qps.per.region.server hoodie.index.hbase.min.qps.fraction hoodie.index.hbase.put.batch.size
hoodie.index.hbase.put.batch.size.autocompute hoodie.index.hbase.qps.allocator.class hoodie.index.hbase.qps.fraction
hoodie.index.hbase.regionserver.kerberos.principal hoodie.index.hbase.rollback.sync
hoodie.index.hbase.security.authentication hoodie.index.hbase.sleep.ms.for.get.batch
hoodie.index.hbase.sleep.ms.for.put.batch hoodie.index.hbase.table hoodie.index.hbase.zk.connection_timeout_ms
hoodie.index.hbase.zk.session_timeout_ms hoodie.index.hbase.zknode.path hoodie.index.hbase.zkpath.qps_root
hoodie.index.hbase.zkport hoodie.index.hbase.zkquorum hoodie.index.name hoodie.index.type
hoodie.insert.shuffle.parallelism hoodie.instant_state.timeline_server_based.enabled
hoodie.instant_state.timeline_server_based.force_refresh.request.number hoodie.internal.schema hoodie.io.factory.class
hoodie.keep.max.commits hoodie.keep.min.commits hoodie.keygen.datetime.parser.class
hoodie.keygen.timebased.input.dateformat hoodie.keygen.timebased.input.dateformat.list.delimiter.regex
hoodie.keygen.timebased.input.timezone hoodie.keygen.timebased.output.dateformat
hoodie.keygen.timebased.output.timezone hoodie.keygen.timebased.timestamp.scalar.time.unit
hoodie.keygen.timebased.timestamp.type hoodie.keygen.timebased.timezone hoodie.lance.max.file.size
hoodie.lance.read.allocator.size.bytes hoodie.lance.read.metadata.allocator.size.bytes
hoodie.lance.write.allocator.size.bytes hoodie.lance.write.flush.byte.watermark
hoodie.layout.optimize.build.curve.sample.size hoodie.layout.optimize.curve.build.method
hoodie.layout.optimize.data.skipping.enable hoodie.layout.optimize.enable hoodie.layout.optimize.strategy
hoodie.log.compaction.blocks.threshold hoodie.log.compaction.enable hoodie.log.compaction.inline
hoodie.logfile.data.block.format hoodie.logfile.data.block.max.size hoodie.logfile.max.size
hoodie.logfile.to.parquet.compression.ratio hoodie.markers.delete.parallelism
hoodie.markers.timeline_server_based.batch.interval_ms hoodie.markers.timeline_server_based.batch.num_threads
hoodie.memory.compaction.fraction hoodie.memory.compaction.max.size hoodie.memory.dfs.buffer.max.size
hoodie.memory.merge.fraction hoodie.memory.merge.max.size hoodie.memory.spillable.map.path
hoodie.memory.writestatus.failure.fraction hoodie.merge.allow.duplicate.on.inserts
hoodie.merge.data.validation.enabled hoodie.merge.small.file.group.candidates.limit hoodie.merge.use.record.positions
hoodie.meta.sync.client.tool.class hoodie.meta.sync.decode_partition hoodie.meta.sync.incremental
hoodie.meta.sync.metadata_file_listing hoodie.meta.sync.no_partition_metadata
hoodie.meta.sync.sync_snapshot_with_table_name hoodie.meta.sync.touch.partitions.enabled
hoodie.meta_sync.global.replicate.timestamp hoodie.meta_sync.spark.version hoodie.metadata
hoodie.metadata.auto.delete.partitions hoodie.metadata.auto.initialize
hoodie.metadata.bloom.filter.dynamic.max.entries hoodie.metadata.bloom.filter.enable hoodie.metadata.bloom.filter.fpp
hoodie.metadata.bloom.filter.num.entries hoodie.metadata.bloom.filter.type hoodie.metadata.compact.max.delta.commits
hoodie.metadata.compact.max.delta.seconds hoodie.metadata.compact.trigger.strategy
hoodie.metadata.derive.from.datatable.clean.policy hoodie.metadata.dir.filter.regex hoodie.metadata.enable
hoodie.metadata.fallback.enable hoodie.metadata.file.cache.max.size.mb
hoodie.metadata.global.record.level.index.enable hoodie.metadata.global.record.level.index.max.filegroup.count
hoodie.metadata.global.record.level.index.min.filegroup.count hoodie.metadata.index.async
hoodie.metadata.index.bloom.filter.column.list hoodie.metadata.index.bloom.filter.enable
hoodie.metadata.index.bloom.filter.file.group.count hoodie.metadata.index.bloom.filter.parallelism
hoodie.metadata.index.check.timeout.seconds hoodie.metadata.index.column.stats.column.list
hoodie.metadata.index.column.stats.enable hoodie.metadata.index.column.stats.file.group.count
hoodie.metadata.index.column.stats.inMemory.projection.threshold
hoodie.metadata.index.column.stats.max.columns.to.index hoodie.metadata.index.column.stats.parallelism
hoodie.metadata.index.column.stats.processing.mode.override hoodie.metadata.index.drop
hoodie.metadata.index.expression.column hoodie.metadata.index.expression.enable
hoodie.metadata.index.expression.file.group.count hoodie.metadata.index.expression.options
hoodie.metadata.index.expression.parallelism hoodie.metadata.index.partition.stats.enable
hoodie.metadata.index.partition.stats.file.group.count hoodie.metadata.index.partition.stats.parallelism
hoodie.metadata.index.secondary.column hoodie.metadata.index.secondary.enable
hoodie.metadata.index.secondary.parallelism hoodie.metadata.log.compaction.blocks.threshold
hoodie.metadata.log.compaction.enable hoodie.metadata.max.deltacommits.when_pending
hoodie.metadata.max.init.parallelism hoodie.metadata.max.logfile.size hoodie.metadata.max.reader.buffer.size
hoodie.metadata.max.reader.memory hoodie.metadata.metrics.enable hoodie.metadata.optimized.log.blocks.scan.enable
hoodie.metadata.partitioned.record.index.max.filegroup.count
hoodie.metadata.partitioned.record.index.min.filegroup.count hoodie.metadata.range.repartition.random.seed
hoodie.metadata.range.repartition.sampling.fraction hoodie.metadata.range.repartition.target.records.per.partition
hoodie.metadata.record.index.enable hoodie.metadata.record.index.enable.validation.on.initialization
hoodie.metadata.record.index.growth.factor hoodie.metadata.record.index.max.filegroup.count
hoodie.metadata.record.index.max.filegroup.size hoodie.metadata.record.index.min.filegroup.count
hoodie.metadata.record.level.index.defer.init hoodie.metadata.record.level.index.enable
hoodie.metadata.record.level.index.max.filegroup.count hoodie.metadata.record.level.index.min.filegroup.count
hoodie.metadata.record.preparation.parallelism hoodie.metadata.repartition.default.partitions
hoodie.metadata.repartition.min.partitions.threshold hoodie.metadata.spillable.map.path
hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor hoodie.metadata.streaming.write.enabled
hoodie.metadata.table.service.manager.actions hoodie.metadata.table.service.manager.enabled
hoodie.metadata.write.concurrency.mode hoodie.metadata.write.fail.on.table.service.failures hoodie.metaserver
hoodie.metaserver.connect.retries hoodie.metaserver.connect.retry.delay hoodie.metaserver.enabled
hoodie.metaserver.uris hoodie.metrics hoodie.metrics.cloudwatch hoodie.metrics.cloudwatch.maxDatumsPerRequest
hoodie.metrics.cloudwatch.metric.prefix hoodie.metrics.cloudwatch.namespace
hoodie.metrics.cloudwatch.report.period.seconds hoodie.metrics.configs.properties hoodie.metrics.datadog
hoodie.metrics.datadog.api.key hoodie.metrics.datadog.api.key.skip.validation hoodie.metrics.datadog.api.key.supplier
hoodie.metrics.datadog.api.site hoodie.metrics.datadog.api.timeout.seconds hoodie.metrics.datadog.metric.host
hoodie.metrics.datadog.metric.prefix hoodie.metrics.datadog.metric.tags hoodie.metrics.datadog.report.period.seconds
hoodie.metrics.executor.enable hoodie.metrics.graphite hoodie.metrics.graphite.host
hoodie.metrics.graphite.metric.prefix hoodie.metrics.graphite.port hoodie.metrics.graphite.report.period.seconds
hoodie.metrics.jmx hoodie.metrics.jmx.host hoodie.metrics.jmx.port hoodie.metrics.lock.enable hoodie.metrics.m3
hoodie.metrics.m3.env hoodie.metrics.m3.host hoodie.metrics.m3.port hoodie.metrics.m3.service hoodie.metrics.m3.tags
hoodie.metrics.on hoodie.metrics.prometheus hoodie.metrics.prometheus.port hoodie.metrics.pushgateway
hoodie.metrics.pushgateway.delete.on.shutdown hoodie.metrics.pushgateway.host hoodie.metrics.pushgateway.job.name
hoodie.metrics.pushgateway.port hoodie.metrics.pushgateway.random.job.name.suffix
hoodie.metrics.pushgateway.report.labels hoodie.metrics.pushgateway.report.period.seconds
hoodie.metrics.reporter.class hoodie.metrics.reporter.metricsname.prefix hoodie.metrics.reporter.type
hoodie.metricscompaction.log.blocks.on hoodie.optimistic.consistency.guard.sleep_time_ms
hoodie.optimized.log.blocks.scan.enable hoodie.orc.block.size hoodie.orc.compression.codec hoodie.orc.max.file.size
hoodie.orc.stripe.size hoodie.parquet.block.size hoodie.parquet.bloom.filter.enabled hoodie.parquet.compression.codec
hoodie.parquet.compression.ratio hoodie.parquet.dictionary.enabled hoodie.parquet.field_id.write.enabled
hoodie.parquet.flink.rowdata.write.support.class hoodie.parquet.max.file.size hoodie.parquet.outputtimestamptype
hoodie.parquet.page.size hoodie.parquet.small.file.limit hoodie.parquet.spark.row.write.support.class
hoodie.parquet.write.config.injector.class hoodie.parquet.write.utc-timezone.enabled
hoodie.parquet.writelegacyformat.enabled hoodie.partition.metafile.use.base.format hoodie.partition.ttl.inline
hoodie.partition.ttl.management.strategy.type hoodie.partition.ttl.strategy.class
hoodie.partition.ttl.strategy.days.retain hoodie.partition.ttl.strategy.max.delete.partitions
hoodie.partition.ttl.strategy.partition.selected hoodie.payload.delete.field hoodie.payload.delete.marker
hoodie.payload.event.time.field hoodie.payload.ordering.field hoodie.populate.meta.fields
hoodie.post.commit.failures.ignored hoodie.precommit.validators hoodie.precommit.validators.equality.sql.queries
hoodie.precommit.validators.failure.policy hoodie.precommit.validators.inequality.sql.queries
hoodie.precommit.validators.single.value.sql.queries hoodie.precommit.validators.streaming.offset.tolerance.percentage
hoodie.prewrite.cleaner.policy hoodie.prewrite.validators hoodie.query.as.ro.table hoodie.read.blob.inline.mode
hoodie.read.timeline.holes.resolution.policy hoodie.record.index.input.storage.level
hoodie.record.index.update.partition.path hoodie.record.index.use.caching hoodie.record.merge.mode
hoodie.record.merge.property.hoodie.payload.delete.field hoodie.record.merge.property.hoodie.payload.delete.marker
hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value hoodie.record.merge.strategy.id
hoodie.record.size.estimation.threshold hoodie.record.size.estimator.average.metadata.size
hoodie.record.size.estimator.class hoodie.release.resource.on.completion.enable hoodie.rollback.avoid.duplicate.plan
hoodie.rollback.instant.backup.dir hoodie.rollback.instant.backup.enabled hoodie.rollback.parallelism
hoodie.rollback.using.markers hoodie.schema.cache.enable hoodie.schema.on.read.enable hoodie.sensitive.config.keys
hoodie.simple.index.input.storage.level hoodie.simple.index.parallelism hoodie.simple.index.update.partition.path
hoodie.simple.index.use.caching hoodie.skip.default.partition.validation hoodie.spark.polaris.catalog.class
hoodie.spark.sql.insert.into.operation hoodie.spark.sql.merge.into.partial.updates
hoodie.spark.sql.optimized.writes.enable hoodie.sql.bulk.insert.enable hoodie.sql.insert.mode
hoodie.static.overwrite.partition.paths hoodie.storage.class hoodie.storage.layout.partitioner.class
hoodie.storage.layout.type hoodie.streamer.schemaprovider.class hoodie.streamer.source.kafka.value.deserializer.class
hoodie.table.base.file.format hoodie.table.cdc.enabled hoodie.table.cdc.supplemental.logging.mode
hoodie.table.checksum hoodie.table.create.schema hoodie.table.format hoodie.table.index.defs.path
hoodie.table.initial.version hoodie.table.keygenerator.class hoodie.table.keygenerator.type
hoodie.table.legacy.payload.class hoodie.table.log.file.format hoodie.table.metadata.partitions
hoodie.table.metadata.partitions.inflight hoodie.table.multiple.base.file.formats.enable hoodie.table.name
hoodie.table.ordering.fields hoodie.table.partial.update.mode hoodie.table.partition.fields
hoodie.table.partition_extractor_class hoodie.table.precombine.field hoodie.table.recordkey.fields
hoodie.table.ro.file.format hoodie.table.rt.file.format hoodie.table.secondary.indexes.metadata
hoodie.table.service.manager hoodie.table.service.manager.actions hoodie.table.service.manager.connection.retries
hoodie.table.service.manager.connection.retry.delay.sec hoodie.table.service.manager.connection.timeout.sec
hoodie.table.service.manager.deploy.extra.params hoodie.table.service.manager.deploy.parallelism
hoodie.table.service.manager.deploy.queue hoodie.table.service.manager.deploy.resources
hoodie.table.service.manager.deploy.username hoodie.table.service.manager.enabled
hoodie.table.service.manager.execution.engine hoodie.table.service.manager.uris hoodie.table.services.enabled
hoodie.table.services.incremental.enabled hoodie.table.timeline.timezone hoodie.table.type hoodie.table.version
hoodie.time.generator.max_expected_clock_skew_ms hoodie.time.generator.type hoodie.timeline.compaction.batch.size
hoodie.timeline.compaction.target.file.max.bytes hoodie.timeline.history.path hoodie.timeline.layout.version
hoodie.timeline.manifest.retained.versions hoodie.timeline.path hoodie.upsert.shuffle.parallelism
hoodie.write.application.id hoodie.write.auto.upgrade hoodie.write.buffer.limit.bytes
hoodie.write.buffer.record.cache.limit hoodie.write.buffer.record.sampling.rate
hoodie.write.can.ignore.post.commit.failures hoodie.write.commit.callback.class
hoodie.write.commit.callback.http.api.key hoodie.write.commit.callback.http.custom.headers
hoodie.write.commit.callback.http.timeout.seconds hoodie.write.commit.callback.http.url
hoodie.write.commit.callback.on hoodie.write.complex.keygen.new.encoding hoodie.write.complex.keygen.validation.enable
hoodie.write.concat.handle.class hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
hoodie.write.concurrency.async.conflict.detector.period_ms
hoodie.write.concurrency.early.conflict.check.commit.conflict hoodie.write.concurrency.early.conflict.detection.enable
hoodie.write.concurrency.early.conflict.detection.strategy hoodie.write.concurrency.mode
hoodie.write.concurrency.schema.conflict.resolution.enable hoodie.write.empty.clean.interval.hours
hoodie.write.executor.disruptor.buffer.limit.bytes hoodie.write.executor.disruptor.wait.strategy
hoodie.write.executor.type hoodie.write.ignore.failed hoodie.write.lock.app_id hoodie.write.lock.client.num_retries
hoodie.write.lock.client.wait_time_ms_between_retry hoodie.write.lock.conflict.resolution.strategy
hoodie.write.lock.dynamodb.billing_mode hoodie.write.lock.dynamodb.endpoint_url
hoodie.write.lock.dynamodb.partition_key hoodie.write.lock.dynamodb.read_capacity hoodie.write.lock.dynamodb.region
hoodie.write.lock.dynamodb.table hoodie.write.lock.dynamodb.table_creation_timeout
hoodie.write.lock.dynamodb.write_capacity hoodie.write.lock.filesystem.expire hoodie.write.lock.filesystem.path
hoodie.write.lock.heartbeat_interval_ms hoodie.write.lock.hivemetastore.database hoodie.write.lock.hivemetastore.table
hoodie.write.lock.hivemetastore.uris hoodie.write.lock.max_wait_time_ms_between_retry hoodie.write.lock.num_retries
hoodie.write.lock.provider hoodie.write.lock.storage.heartbeat.poll.secs hoodie.write.lock.storage.renew.interval.secs
hoodie.write.lock.storage.validity.timeout.secs hoodie.write.lock.wait_time_ms
hoodie.write.lock.wait_time_ms_between_retry hoodie.write.lock.zookeeper.base_path
hoodie.write.lock.zookeeper.connection_timeout_ms hoodie.write.lock.zookeeper.lock_key
hoodie.write.lock.zookeeper.port hoodie.write.lock.zookeeper.session_timeout_ms hoodie.write.lock.zookeeper.url
hoodie.write.markers.type hoodie.write.merge.handle.class hoodie.write.merge.handle.fallback
hoodie.write.num.retries.on.conflict.failures hoodie.write.partial.update.schema
hoodie.write.partial.update.unavailable.value hoodie.write.record.merge.custom.implementation.classes
hoodie.write.record.merge.mode hoodie.write.record.merge.strategy.id hoodie.write.record.positions
hoodie.write.rolling.metadata.keys hoodie.write.rolling.metadata.timeline.lookback.commits hoodie.write.schema
hoodie.write.set.null.for.missing.columns hoodie.write.status.storage.level hoodie.write.table.version
hoodie.write.tagged.record.storage.level hoodie.write.track.event.time.watermark hoodie.writestatus.class
"""
KEYS = frozenset(_TEXT.split())
