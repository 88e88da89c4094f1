"""The largest sizes of a table's files. A larger file is refused by name before it is read.

A table's files may be damaged or malicious; no honest table has files that are refused here. Limits on the content of a
file (entries of a footer, nesting of a schema) are in the module of its format.
"""

from .errors import CorruptFile

MIB = 1 << 20

SMALL_FILE = 4 * MIB
"""Files that describe a table, or a state: hoodie.properties, index definitions, manifests of the archive, partition
metafiles, leases, locks. The largest part of an honest file is the table's schema: ten thousand columns take 2 MB."""

LARGEST_FILE = 1024 * MIB
"""Files that grow with the table and are read whole: instants, markers, manifests, checkpoints. An instant has about
300 bytes of Avro (1.1 kB of JSON) for each file that it names, and Java cannot make an instant of 2 GiB: a million
files as JSON, three million as Avro."""

LARGEST_LOG = 4096 * MIB
"""A log file of the metadata table, or a file of the archive. Hudi begins a new log file at 2 GiB
(hoodie.metadata.max.logfile.size) and a new archive file at 1 GB (hoodie.timeline.compaction.target.file.max.bytes),
after the write that makes the file so large."""


MOST_BLOOM_ENTRIES = 10_000_000
LEAST_BLOOM_RATE = 1e-12
"""The largest bloom filter that a table may set: a larger one takes memory and time, and no honest writer sets it."""


def check_size(path: str, size: int, limit: int) -> None:
    """Raise CorruptFile when the file at the full `path` has more than `limit` bytes."""
    if size > limit:
        raise CorruptFile(f"{path} has {size} bytes, and a valid file of its kind never has more than {limit}")
