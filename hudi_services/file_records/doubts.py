"""Why the metadata table cannot be judged by a file, or without one."""

from enum import Enum


class Doubt(Enum):
    """Why it is unknown whether the metadata table is right about a file."""

    GOING = "a pending clean or rollback deletes it"
    GONE_INSTANT = "listed and there, but its instant is gone from the timeline"
    HIDDEN = "its commit was archived beyond a savepoint, which hides it from readers"
    ARCHIVED = "not listed, and older than the timeline: its commit, or a repeated task, may have written it"
    SILENT_COMMIT = "not listed, and its commit does not list files"
    LOG_OF_SLICE = "not listed: a log file named after its slice, whose blocks, which tell who wrote it, cannot be read"
    GROWING = "its size differs, and a pending write may be appending to it"
    PENDING_WRITES = "listed without a file, but a pending write may be about to write it"
    BROKEN_FILE = "its footer, its keys, or its log blocks cannot be read"
    NOT_MERGED = "its log files are not merged by this program, so that its keys and values are not compared"
    UNKNOWN_TYPE = "the indexed column has a type that this version does not know"
    MISSING_PARTITION = "no file of its partition is stored, although commits list files in it"
    UNREADABLE_VALUES = "its footer does not tell the range of an indexed column, and the values cannot be read"
    NOT_COMPUTED = "it has values for which this program does not compute the function"
