"""The check of the partition `bloom_filters`: each record against the footer of its file; records of deleted files."""

from collections.abc import Iterator, Sequence

from ..file_records.expected_state import ExpectedState
from ..file_records.footers import Described, digest, read_bloom
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import BLOOM_FILTERS, bloom_filter_key
from ..metadata.records.model import BloomRecord
from ..model import BaseFile
from .model import Difference, DifferenceKind, Severity


class BloomFiltersCheck:
    def __init__(self, metadata: MetadataTable, state: ExpectedState) -> None:
        self._metadata = metadata
        self._state = state
        self._expected: dict[str, tuple[BaseFile, bytes | None]] = {}
        """The file and the digest of its bloom filter, by key. Digests only: a filter has hundreds of kilobytes."""
        self.checked = 0

    def at(self, files: Sequence[Described]) -> Iterator[Difference]:
        """Only keep the digests of the files: the records are read once, at the end."""
        for one in files:
            if isinstance(one.file, BaseFile):
                self._expected[bloom_filter_key(one.file.partition, one.file.name)] = (one.file, one.bloom)
        return iter(())

    def at_end(self) -> Iterator[Difference]:
        missing = {key for key, (_, bloom) in self._expected.items() if bloom is not None}
        for record in self._metadata.reader(BLOOM_FILTERS).scan():
            if not isinstance(record, BloomRecord) or record.deleted:
                continue
            self.checked += 1
            file, bloom = self._expected.get(record.key, (None, None))
            missing.discard(record.key)
            if file is None:
                if record.key not in self._state.file_keys:
                    yield Difference(
                        BLOOM_FILTERS, DifferenceKind.STALE_BLOOM, record.key, None, None, None,
                        f"of a file that is gone, written at {record.instant}", lambda: None,
                        severity=Severity.HARMLESS,
                    )  # fmt: skip
            elif digest(record) != bloom:
                has = "no filter" if bloom is None else "another one"
                yield self._difference(DifferenceKind.WRONG_BLOOM, record.key, file, f"its file has {has}")
        for key in sorted(missing):
            yield self._difference(DifferenceKind.BLOOM_MISSING, key, self._expected[key][0], "its file has one")

    def _difference(self, kind: DifferenceKind, key: str, file: BaseFile, detail: str) -> Difference:
        source = self._metadata.slices
        return Difference(
            BLOOM_FILTERS, kind, key, file.partition, file.name, None, detail, lambda: read_bloom(source, file)
        )
