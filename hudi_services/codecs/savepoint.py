"""HoodieSavepointMetadata, read only: which files a savepoint holds.

{savepointedBy, savepointedAt, comments, partitionMetadata {partition: {partitionPath, savepointDataFile [file name]}},
version}; an Avro container file in every table version. Source: SavepointActionExecutor of Apache Hudi.
"""

from collections.abc import Mapping

from ..errors import CorruptFile
from . import avro
from .named_paths import check_partitions


def decode_savepoint(data: bytes, path: str) -> Mapping[str, tuple[str, ...]]:
    """Bare names of base and log files, by partition. Raises CorruptFile, also for an empty file."""
    tree = avro.read_container(data, path)
    try:
        partitions = tree["partitionMetadata"].items()
        files = {partition: tuple(map(str, held["savepointDataFile"])) for partition, held in partitions}
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no savepoint: {e}") from e
    check_partitions(path, files)
    return files
