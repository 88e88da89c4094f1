"""How large the files of a table are at most. What is larger is refused by name before it is read.

The table's files may be broken, or written by somebody who means harm; what is refused here, no honest table has.
Limits of what a file holds (entries of a footer, nesting of a schema) stand with the format that they belong to.
"""

from .errors import CorruptFile

MIB = 1 << 20

SMALL_FILE = 4 * MIB
"""What describes a table or notes something: hoodie.properties, index definitions, manifests of the archive, partition
metafiles, notes. The largest part of an honest one is the schema of the table: ten thousand columns take 2 MB."""

LARGEST_FILE = 1024 * MIB
"""What grows with the table and is read whole: instants, markers, manifests, notes. An instant has about 300 bytes of
Avro (1.1 kB of JSON) for each file that it names, and Java cannot make one of 2 GiB: a million files as JSON, three
million as Avro."""

LARGEST_LOG = 4096 * MIB
"""A log file of the metadata table, or a file of the archive. Hudi begins another one at 2 GiB
(hoodie.metadata.max.logfile.size), or at 1 GB (hoodie.timeline.compaction.target.file.max.bytes), after what makes it
so large."""


MOST_BLOOM_ENTRIES = 10_000_000
LEAST_BLOOM_RATE = 1e-12
"""What a table may ask of a bloom filter: more takes memory and time, and no honest writer sets it."""


def check_size(path: str, size: int, limit: int) -> None:
    """Raise CorruptFile when the file at the full `path` has more than `limit` bytes."""
    if size > limit:
        raise CorruptFile(f"{path} has {size} bytes, and a valid file of its kind never has more than {limit}")
