"""Names of base files, log files, file groups and partition folders: built and parsed here only.

    base file   <fileId>_<writeToken>_<instant><ext>      fileId of letters, digits, "-"; of .hfile all but "_" and "."
    log file    .<fileId>_<instant>.log.<version>[_<writeToken>[<suffix>]]
    write token <taskPartitionId>-<stageId>-<taskAttemptId>
    file id     <uuid>-<n>; by a bucket index the uuid begins with the eight digits of the bucket

Sources: FSUtils, HoodieBaseFile, HoodieLogFile, HoodiePartitionMetadata.
"""

import re
import uuid

from .errors import CorruptFile
from .model import BaseFile, DataFile, FileSlice, LogFile, WriteStat
from .paths import TABLE_FOLDER, bare_name

UNKNOWN_WRITE_TOKEN = "1-0-1"
"""HoodieLogFormat.UNKNOWN_WRITE_TOKEN: the writer was no task of a job."""
PARTITION_METAFILE = ".hoodie_partition_metadata"
OWN_FOLDER = f"{TABLE_FOLDER}/.hudi_services"
"""The folder of this tool's own files of a table; no other program reads it."""

_BASE_FILE = re.compile(r"([a-zA-Z0-9-]+)_([a-zA-Z0-9-]+)_([0-9]+)(\.[a-zA-Z0-9]+)", re.ASCII)
# A file group of a partitioned record index has the name of a partition in its file id, in any script and with %XX.
_HFILE = re.compile(r"([^._]+)_([a-zA-Z0-9-]+)_([0-9]+)(\.hfile)", re.ASCII)
_LOG_FILE = re.compile(r"\.([^._]+)_([^.]*)\.(log|archive)\.(\d+)(?:_(\d+-\d+-\d+)(\.cdc)?)?", re.ASCII)

_BUCKET_DIGITS = 8


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = ".parquet") -> str:
    return f"{file_id}_{write_token}_{instant}{extension}"


def parse_base_file(partition: str, name: str, size: int) -> BaseFile | None:
    """The base file called `name`, or None when the name is not one (temporary and foreign files)."""
    match = _BASE_FILE.fullmatch(name) or _HFILE.fullmatch(name)
    if match is None:
        return None
    file_id, token, instant, _ = match.groups()
    return BaseFile(partition, name, file_id, token, instant, size)


def base_slice(partition: str, name: str, size: int) -> FileSlice:
    """The slice that is the base file called `name` alone. Raises CorruptFile for other names."""
    file = parse_base_file(partition, name, size)
    if file is None:
        raise CorruptFile(f"{name} in partition {partition!r} does not have the name of a base file")
    return FileSlice.of_base(file)


def written_slice(stat: WriteStat) -> FileSlice:
    """The slice of the base file that a write stat names. Raises CorruptFile for the names of other files."""
    return base_slice(stat.partition, bare_name(stat.path), stat.file_size)


def written_file(stat: WriteStat) -> DataFile:
    """The base file or log file that a write stat names."""
    file = parse_data_file(stat.partition, bare_name(stat.path), stat.file_size)
    assert file is not None, "the write stat is one of a base file or a log file"
    return file


def renamed(name: str, instant: str) -> str:
    """The name of a base file at another instant. Raises CorruptFile for the names of other files."""
    file = base_slice("", name, 0).base_file
    assert file is not None, "it was parsed"
    return base_file_name(file.file_id, file.write_token, instant, f".{name.rpartition('.')[2]}")


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def parse_log_file(partition: str, name: str, size: int) -> LogFile | None:
    """The log file called `name`, or None when the name is not one."""
    match = _LOG_FILE.fullmatch(name)
    if match is None:
        return None
    file_id, instant, _, version, token, suffix = match.groups()
    return LogFile(partition, name, file_id, instant, int(version), token or "", suffix or "", size)


def parse_data_file(partition: str, name: str, size: int) -> DataFile | None:
    """The base or log file called `name`, or None when the name is that of neither."""
    return parse_base_file(partition, name, size) or parse_log_file(partition, name, size)


def log_order(log: LogFile) -> tuple[str, int, str, str]:
    """A key by which the log files of a slice sort in the order of merging, oldest first (LogFileComparator)."""
    return log.instant, log.version, log.write_token, log.suffix


def instant_in(name: str) -> str:
    """The time in the name of a base or log file, whatever follows its extension (FSUtils.getCommitTime); else ""."""
    log = parse_log_file("", name, 0)
    if log is not None:
        return log.instant
    match = _BASE_FILE.match(name) or _HFILE.match(name)
    return match[3] if match is not None else ""


def new_file_id(random: uuid.UUID | None = None) -> str:
    return f"{random or new_prefix()}-0"


def new_prefix(bucket: int | None = None) -> str:
    """The uuid of new file ids: with the digits of a bucket where `bucket` is its number, and never without."""
    prefix = str(uuid.uuid4())
    if bucket is not None:
        return f"{bucket:0{_BUCKET_DIGITS}d}{prefix[_BUCKET_DIGITS:]}"
    return new_prefix() if has_bucket_digits(prefix) else prefix


def bucket_digits(file_id: str) -> str:
    """Where a file id has the digits of a bucket, if it has any."""
    return file_id[:_BUCKET_DIGITS]


def has_bucket_digits(file_id: str) -> bool:
    """Whether a file id begins as that of a bucket, of which there are less than 100,000."""
    digits = bucket_digits(file_id)
    return digits.isdecimal() and digits.startswith("000")


def is_partition_metafile(name: str) -> bool:
    """Whether `name` is that of a partition metafile: plain, or with an extension, as the base files have
    (`hoodie.partition.metafile.use.base.format`)."""
    return name == PARTITION_METAFILE or name.startswith(f"{PARTITION_METAFILE}.")
