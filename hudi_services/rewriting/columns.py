"""The columns of a group's rows: which are kept, how they are read and written, and their checksum when read back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..base_files.file_writer import FILE_NAME_COLUMN
from ..base_files.slice_outline import SliceForm
from ..base_files.slices import SliceReader, StoredRowGroup
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
    def of(cls, target: FileSchema, slices: Sequence[SliceForm], *, meta_fields: bool) -> "Columns":
        """The columns of the rows of `slices`, if any, in new files with the schema `target`."""
        # In tables without meta fields the column of file names is empty, and stays so.
        made = (FILE_NAME_COLUMN,) if meta_fields and target.column(FILE_NAME_COLUMN) else ()
        kept = tuple(name for name in target.columns if name not in made)
        dictionary = frozenset.intersection(*(one.dictionary_columns for one in slices)) if slices else frozenset()
        # A dictionary that did not pay in one of them will not pay in their union.
        return cls(kept, made, dictionary, frozenset().union(*(one.plain_leaves for one in slices)))

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
