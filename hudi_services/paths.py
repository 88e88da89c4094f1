"""Paths with "/" between names, and checks of those below a table's folder: a table's file may name anything."""

import re

_OUTSIDE = re.compile(r"(?:^|/)\.{0,2}(?=/|\Z)")
TABLE_FOLDER = ".hoodie"
"""The folder of a table's own files."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ESCAPES = str.maketrans({one: f"%{ord(one):02X}" for one in [*map(chr, range(1, 0x20)), *"\x7f\"#%'*/:=?\\{[]^"]})
"""What Hudi writes for characters that names of folders cannot have (PartitionPathEncodeUtils)."""


def bare_name(path: str) -> str:
    """The last name of a path of any form, as of a file without its folder."""
    return path.rpartition("/")[2]


def is_below(path: str) -> bool:
    """Whether `path` names something below the folder: no name in it is empty, "." or "..", and it is not absolute."""
    return _OUTSIDE.search(path) is None and "\0" not in path


def is_name(name: str) -> bool:
    """Whether `name` is the name of a single file or folder."""
    return "/" not in name and is_below(name)


def is_partition(path: str) -> bool:
    """Whether `path` can be a partition: "" where there are no partitions, and nothing in the table's own folder."""
    return not path or (is_below(path) and path.partition("/")[0] != TABLE_FOLDER)


def is_addressable(path: str) -> bool:
    """Whether stores accept the path: obstore refuses ASCII control characters, and a name must be Unicode text."""
    return _CONTROL.search(path) is None and is_unicode(path)


def is_unicode(text: str) -> bool:
    """Whether `text` can be written as UTF-8; a name from the operating system need not be (os.fsdecode)."""
    if text.isascii():
        return True
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False
