"""The columns of a group's rows: which are kept, how they are read and written, and their checksum when read back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..base_files.file_writer import FILE_NAME_COLUMN
from ..base_files.slices import (
    SliceReader,
    StoredRowGroup,
    shared_dictionary_columns,
    shared_plain_leaves,
)
from ..parquet.file_schema import FileSchema
from ..rows.conservation import Checksum, check_file_names, checksum


@dataclass(frozen=True, slots=True)
class Columns:
    """`kept` keep their values, `made` are written anew: `_hoodie_file_name`, or none without meta fields."""

    kept: tuple[str, ...]
    made: tuple[str, ...]
    dictionary: frozenset[str]
    """Columns to read as dictionaries."""
    plain_leaves: frozenset[str]
    """Leaves (dotted paths) to write without dictionary."""

    @classmethod
    def of(cls, target: FileSchema, readers: Sequence[SliceReader], *, meta_fields: bool) -> "Columns":
        """The columns of the rows of `readers` in new files with the schema `target`."""
        # In tables without meta fields the column of file names is empty, and stays so.
        made = (FILE_NAME_COLUMN,) if meta_fields and target.column(FILE_NAME_COLUMN) else ()
        kept = tuple(name for name in target.columns if name not in made)
        return cls(kept, made, shared_dictionary_columns(readers), shared_plain_leaves(readers))

    def checksum(self, new: SliceReader, groups: Iterable[StoredRowGroup], at_once: int) -> Checksum:
        """The checksum of the rows of row groups of a new file; `at_once` as for `BaseFileReader.pieces`.

        Raises CheckFailed when a row has another file name.
        """
        dictionary = new.dictionary_columns & {*self.dictionary, *self.made}
        result = Checksum()
        for group in groups:
            names = [*self.kept, *self.made]
            for table in group.reader.pieces(group.index, names, dictionary=dictionary, at_once=at_once):
                for column in table.select(self.made).columns:
                    check_file_names(column, new.full_path)
                result += checksum(table.select(self.kept))
        return result
