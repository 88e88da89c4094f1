"""The options of archivals of the timeline.

Source: HoodieArchivalConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, Phase, Section, between
from .value_types import integer, size

ARCHIVAL = Section("Archival", Phase.ARCHIVE, ANY_VALUE)
ARCHIVE_MOST = ARCHIVAL(
    "hoodie.keep.max.commits",
    30,
    "Commits are archived when more than this many are on the timeline; raised by as much as the next number.",
    parse=integer(1),
)
ARCHIVE_LEAST = ARCHIVAL(
    "hoodie.keep.min.commits",
    20,
    "Archival leaves this many commits on the timeline, and more where cleans by the options above retain more.",
    parse=integer(1),
    phase=Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
)
ARCHIVE_BATCH = ARCHIVAL(
    "hoodie.commits.archival.batch",
    10,
    "Table version 6: the entries of one block of an archive file.",
    parse=integer(1, 10_000),
)
ARCHIVE_BEYOND_SAVEPOINT = ARCHIVAL(
    "hoodie.archive.beyond.savepoint",
    False,
    "Whether commits after a savepoint are archived, too; readers do not see them until the savepoint is deleted.",
)
ARCHIVE_KEEPS_RETAINED = ARCHIVAL(
    "hoodie.archive.block.on.latest.clean.ectr",
    False,
    "Whether commits stay on the timeline from the earliest one that the last clean retains.",
)
ARCHIVE_BEYOND_CHECKPOINT = ARCHIVAL(
    "hudi.services.archive.beyond.checkpoint",
    False,
    "Whether the last checkpoint of a stream is archived, too; the stream, when it starts again, does not find it.",
)
ARCHIVE_MERGED_FILES = ARCHIVAL(
    "hoodie.timeline.compaction.batch.size",
    10,
    "Table versions 8 and 9: so many archive files of one level are merged into one of the next.",
    parse=integer(2, 10_000),
)
ARCHIVE_FILE_BYTES = ARCHIVAL(
    "hoodie.timeline.compaction.target.file.max.bytes",
    64 << 20,
    "Table versions 8 and 9: archive files of this many bytes are merged no more; 64 MiB is the most that counts.",
    parse=size,
)
ARCHIVE_MANIFESTS = ARCHIVAL(
    "hoodie.timeline.manifest.retained.versions",
    3,
    "Table versions 8 and 9: the number of newest manifests of the archive that are kept, for readers that have begun.",
    parse=integer(1, 10_000),
    in_table=between(2, 1_000),
)
