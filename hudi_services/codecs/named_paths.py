"""The check of names in plans: partitions of the table, and files by bare name or by a path that ends with it.

Only partition and name count: the table may have another path than the plan says (a link, s3 for s3a).
"""

from collections.abc import Iterable

from ..errors import CorruptFile
from ..paths import bare_name, is_name, is_partition


def check_partitions(source: str, partitions: Iterable[str]) -> None:
    """Raise CorruptFile, naming the file `source`, when one of `partitions` cannot be a partition of the table."""
    for partition in partitions:
        if not is_partition(partition):
            raise outside(source, partition)


def check_files(source: str, paths: Iterable[str]) -> None:
    """Raise CorruptFile, naming the file `source`, when one of `paths` does not end with the name of a file."""
    for path in paths:
        if not is_name(bare_name(path)):
            raise outside(source, path)


def outside(source: str, path: str) -> CorruptFile:
    return CorruptFile(
        f"{source} names {path!r}, where no data of the table can be",
        hint="no writer names such a path: find out who wrote the file; a plan that does is dropped by "
        "hudi-services recover",
    )
