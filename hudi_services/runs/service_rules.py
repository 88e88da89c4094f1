"""The rules of compactions, cleans and archivals, and of those of the metadata table, from the options in force."""

import math
from dataclasses import replace

from ..archival.archive import ArchivePlan
from ..archival.selection import ArchiveRules
from ..cleaning.plan import CleanRules
from ..cleaning.retention import Policy, Retention
from ..cleaning.scope import PartitionRules
from ..compaction.plan import CompactionRules
from ..compaction.strategies import Limits
from ..errors import ConfigError
from ..options import Options, archive_keys, clean_keys, commit_keys, compaction_keys
from ..table_config import TableConfig
from ..timeline.compaction_trigger import Trigger

_METADATA_CLEAN_COMMITS, _METADATA_CLEANS_LESS = 20, 1.2
"""Cleans of the metadata table retain so many commits, and so many times more than those of the table."""
_METADATA_VERSIONS = 2
"""The file slices that they keep where they do not follow the policy of the table's cleans."""


def compaction_rules(options: Options) -> CompactionRules:
    """The rules of a compaction plan."""
    return CompactionRules(
        trigger=_trigger(options),
        strategy=options[compaction_keys.COMPACTION_STRATEGY],
        limits=Limits(
            io_megabytes=options[compaction_keys.COMPACTION_IO],
            log_bytes=options[compaction_keys.COMPACTION_LOG_BYTES],
            log_files=options[compaction_keys.COMPACTION_LOG_FILES],
            days=options[compaction_keys.COMPACTION_DAYS],
        ),
    )


def _trigger(options: Options) -> Trigger:
    return Trigger(
        kind=options[compaction_keys.COMPACTION_TRIGGER],
        commits=options[compaction_keys.COMPACTION_COMMITS],
        seconds=options[compaction_keys.COMPACTION_SECONDS],
    )


def metadata_trigger(options: Options) -> Trigger:
    """When the metadata table is compacted."""
    return Trigger(
        kind=options[compaction_keys.METADATA_COMPACT_TRIGGER],
        commits=options[compaction_keys.METADATA_COMPACT_COMMITS],
        seconds=options[compaction_keys.METADATA_COMPACT_SECONDS],
    )


def clean_rules(options: Options) -> CleanRules:
    """The rules of a clean. Raises ConfigError for a partition filter with incremental cleaning, as Hudi does."""
    partitions = PartitionRules(
        incremental=options[clean_keys.CLEAN_INCREMENTAL],
        pattern=options[clean_keys.CLEAN_PARTITION_REGEX],
        selected=options[clean_keys.CLEAN_PARTITIONS_SELECTED],
    )
    if partitions.incremental and (partitions.pattern or partitions.selected):
        key = clean_keys.CLEAN_PARTITIONS_SELECTED if partitions.selected else clean_keys.CLEAN_PARTITION_REGEX
        raise ConfigError(
            f"{key.key} cannot be used with {clean_keys.CLEAN_INCREMENTAL.key}=true: partitions that it leaves out now "
            "would not be cleaned later",
            hint=f"set {clean_keys.CLEAN_INCREMENTAL.key}=false",
        )
    hours = options[clean_keys.EMPTY_CLEAN_HOURS]
    return CleanRules(
        retention=replace(_retention(options), most_commits=options[clean_keys.CLEAN_MAX_COMMITS]),
        partitions=partitions,
        trigger_commits=options[clean_keys.CLEAN_TRIGGER_COMMITS],
        empty_clean_hours=hours if hours > 0 else None,
    )


def _retention(options: Options) -> Retention:
    return Retention(
        policy=_clean_policy(options),
        commits=options[clean_keys.CLEAN_COMMITS_RETAINED],
        hours=options[clean_keys.CLEAN_HOURS_RETAINED],
        versions=options[clean_keys.CLEAN_FILE_VERSIONS_RETAINED],
    )


def metadata_retention(options: Options) -> Retention:
    """What cleans of the metadata table keep: more than those of the table.

    Unlike in Hudi, no more commits than its archival leaves: with fewer on the timeline, no clean would ever be due.
    Source: HoodieMetadataWriteUtils.createMetadataWriteConfig of Apache Hudi.
    """
    if not options[compaction_keys.METADATA_CLEANS_FOLLOW]:
        return Retention(policy=Policy.FILE_VERSIONS, versions=_METADATA_VERSIONS)
    table = _retention(options)
    commits = max(_METADATA_CLEAN_COMMITS, int(table.commits * _METADATA_CLEANS_LESS))
    return Retention(
        policy=table.policy,
        commits=max(table.commits, min(commits, options[archive_keys.ARCHIVE_LEAST])),
        hours=math.ceil(table.hours * _METADATA_CLEANS_LESS),
        versions=math.ceil(table.versions * _METADATA_CLEANS_LESS),
    )


def archive_plan(options: Options, config: TableConfig) -> ArchivePlan:
    """The rules of an archival of a table with this `config`.

    Raises ConfigError when so few commits would start it that none could go.
    """
    table = archive_rules(options, config)
    if table.most <= table.least:
        raise ConfigError(
            f"{archive_keys.ARCHIVE_MOST.key}={table.most} is not more than "
            f"{archive_keys.ARCHIVE_LEAST.key}={table.least}",
            hint=f"set {archive_keys.ARCHIVE_MOST.key} to at least {table.least + 1}",
        )
    # As Hudi writes its metadata table.
    metadata = ArchiveRules(
        most=table.most + 1,
        least=table.least + 1,
        retention=metadata_retention(options),
        compaction_commits=metadata_trigger(options).counts,
        beyond_checkpoint=True,
    )
    return ArchivePlan(
        table,
        metadata,
        entries=options[archive_keys.ARCHIVE_BATCH],
        merged=options[archive_keys.ARCHIVE_MERGED_FILES],
        merged_bytes=options[archive_keys.ARCHIVE_FILE_BYTES],
        manifests=options[archive_keys.ARCHIVE_MANIFESTS],
    )


def archive_rules(options: Options, config: TableConfig) -> ArchiveRules:
    """The rules of an archival of a table with this `config`, as writers with these options have them."""
    return ArchiveRules(
        most=options[archive_keys.ARCHIVE_MOST],
        least=options[archive_keys.ARCHIVE_LEAST],
        retention=_retention(options),
        compaction_commits=_trigger(options).counts if config.is_merge_on_read else None,
        beyond_savepoint=options[archive_keys.ARCHIVE_BEYOND_SAVEPOINT],
        keeps_retained=options[archive_keys.ARCHIVE_KEEPS_RETAINED],
        beyond_checkpoint=options[archive_keys.ARCHIVE_BEYOND_CHECKPOINT],
        checkpoint_keys=options[commit_keys.ROLLING_KEYS],
    )


_NUMBERS = {
    Policy.COMMITS: clean_keys.CLEAN_COMMITS_RETAINED,
    Policy.HOURS: clean_keys.CLEAN_HOURS_RETAINED,
    Policy.FILE_VERSIONS: clean_keys.CLEAN_FILE_VERSIONS_RETAINED,
}


def _clean_policy(options: Options) -> Policy:
    """The policy that is set, else the policy of the one retention number that is set (HoodieCleanConfig)."""
    implied = [policy for policy, number in _NUMBERS.items() if options.is_set(number)]
    if not options.is_set(clean_keys.CLEAN_POLICY) and len(implied) == 1:
        return implied[0]
    return Policy(options[clean_keys.CLEAN_POLICY])
