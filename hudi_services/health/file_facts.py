"""The sizes of all file slices of a table, as columns: one look at each partition, of which nothing else is kept."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..computed_once import cached_property
from ..file_names import parse_data_file
from ..snapshot import Snapshot

Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileFacts:
    """File slices that readers see, a value for each in every array; sizes in bytes."""

    partitions: tuple[str, ...]
    """The paths of all partitions, in order."""
    partition: npt.NDArray[np.int32]
    """The number of the partition of each slice."""
    base_bytes: Sizes
    """0 for a slice of log files alone."""
    log_files: npt.NDArray[np.int32]
    log_bytes: Sizes
    other_files: int
    """Files that the table lists and readers do not need: those of older file slices, and of replaced groups."""
    other_bytes: int
    replaced_files: int
    """Of them: those of file groups that a replacecommit replaced."""
    replaced_bytes: int
    held_files: int
    """Of them: those that a savepoint holds."""
    held_bytes: int

    @cached_property
    def live_bytes(self) -> int:
        return int(self.base_bytes.sum() + self.log_bytes.sum())

    @cached_property
    def live_files(self) -> int:
        return int(np.count_nonzero(self.base_bytes) + self.log_files.sum())

    @property
    def slices(self) -> int:
        return len(self.partition)

    @cached_property
    def partition_slices(self) -> Sizes:
        """The number of file slices of each partition."""
        return np.bincount(self.partition, minlength=len(self.partitions))

    @cached_property
    def partition_bytes(self) -> Sizes:
        """The live bytes of each partition."""
        sizes = np.zeros(len(self.partitions), np.int64)
        np.add.at(sizes, self.partition, self.base_bytes + self.log_bytes)
        return sizes

    @cached_property
    def largest_partitions(self) -> list[str]:
        """The partitions with rows, those with the most bytes first."""
        order = np.argsort(-self.partition_bytes, kind="stable")
        return [self.partitions[number] for number in order.tolist() if self.partition_bytes[number]]


def file_facts(table: Snapshot) -> FileFacts:
    """Look at every partition of the table, as its readers list it. Raises CorruptFile and StorageError."""
    partitions = table.view.partitions()
    held = {name for _, name in table.ledger.held}
    rows: list[tuple[int, int, int, int]] = []
    other_files = other_bytes = replaced_files = replaced_bytes = held_files = held_bytes = 0
    for number, (partition, view) in enumerate(table.view.each(partitions)):
        live = view.latest_slices(partition)
        rows += ((number, one.base_bytes, len(one.log_files), one.log_bytes) for one in live)
        needed = {file.name for one in live for file in one.files}
        others = {name: size for name, size in view.sizes(partition).items() if name not in needed}
        other_files += len(others)
        other_bytes += sum(others.values())
        parsed = (parse_data_file(partition, name, size) for name, size in others.items())
        replaced = [one.size for one in parsed if one is not None and view.replaced_at(partition, one.file_id)]
        replaced_files += len(replaced)
        replaced_bytes += sum(replaced)
        kept = [size for name, size in others.items() if name in held]
        held_files += len(kept)
        held_bytes += sum(kept)
    columns = np.array(rows, np.int64).reshape(-1, 4)
    counts = columns.astype(np.int32)
    return FileFacts(
        tuple(partitions),
        partition=counts[:, 0],
        base_bytes=columns[:, 1],
        log_files=counts[:, 2],
        log_bytes=columns[:, 3],
        other_files=other_files,
        other_bytes=other_bytes,
        replaced_files=replaced_files,
        replaced_bytes=replaced_bytes,
        held_files=held_files,
        held_bytes=held_bytes,
    )
