"""The data files that readers may open, each with its slice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..file_names import parse_data_file
from ..model import BaseFile, DataFile, FileSlice
from ..table.partitions import Files, ListedFiles
from ..table.view import CHANGE_DATA, FileSystemView


@dataclass(frozen=True, slots=True)
class Member:
    """A data file and the slice that it belongs to."""

    file: DataFile
    slice: FileSlice
    is_live: bool
    """Whether readers see the slice: it is the newest one of a file group that was not replaced."""


def data_files(listed: Mapping[str, Files]) -> dict[str, list[DataFile]]:
    """The base and log files among the `listed` ones; not those with change data, which have no records."""
    return {
        partition: [
            file
            for name, size in sorted(files.items())
            if not name.endswith(CHANGE_DATA) and (file := parse_data_file(partition, name, size)) is not None
        ]
        for partition, files in sorted(listed.items())
    }


def members_of(view: FileSystemView, committed: Mapping[str, Sequence[DataFile]]) -> list[Member]:
    """Each of the `committed` files of a table, which are given by data partition, with its slice in its `view`."""
    names = {partition: {file.name: file.size for file in files} for partition, files in committed.items()}
    view = view.of_files(ListedFiles(names))
    found: list[Member] = []
    for partition in view.partitions():
        known = {
            file.name: one for slices in view.all_slices(partition).values() for one in slices for file in one.files
        }
        live = {file.name: one for one in view.latest_slices(partition) for file in one.files}
        for file in committed[partition]:
            one = live.get(file.name, known.get(file.name))
            if one is None and isinstance(file, BaseFile):
                # Of two base files of one instant, the view shows one.
                one = FileSlice.of_base(file)
            if one is not None:
                found.append(Member(file, one, file.name in live))
    return found
