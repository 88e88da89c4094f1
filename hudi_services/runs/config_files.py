"""Properties files of the operator, in the form that Hudi's own tools read.

    # comment                      a line that starts with #, or has neither "=" nor a blank, is ignored
    key=value                      or `key value` when the line has no "="; blanks around both do not count
    include=other.properties       is replaced by that file, whose path is relative to the folder of this file

There are no escapes and no continuation lines; the last value of a key counts. Source: DFSPropertiesConfiguration.
Unlike that class, we stop at includes that would take forever: two in each of 25 files make 33 million.
"""

import os
from collections.abc import Mapping, Sequence

from ..errors import ConfigError, CorruptFile, NotFound, StorageError
from ..options import Layer
from ..stores import open_storage
from ..urls import check_url

_DEFAULTS = "hudi-defaults.conf"
_SYSTEM_FOLDER = "/etc/hudi/conf"
_FOLDER_VARIABLE = "HUDI_CONF_DIR"
_DEEPEST = 50
_MOST_INCLUDES = 1000


def conf_layers(conf_file: str | None, what: str, environment: Mapping[str, str]) -> list[Layer]:
    """The layer of `conf_file`, or without it, those of Hudi's own conf files of this machine.

    `what` names `conf_file` in messages.

    Raises ConfigError as `read_properties`.
    """
    if conf_file is not None:
        check_url(conf_file, what)
    files = default_files(environment) if conf_file is None else [conf_file]
    return [(f"conf file {file}", read_properties(file)) for file in files]


def default_files(environment: Mapping[str, str]) -> list[str]:
    """Hudi's own conf files that exist on this machine, highest precedence first."""
    folders = [environment.get(_FOLDER_VARIABLE, ""), _SYSTEM_FOLDER]
    files = [os.path.join(folder, _DEFAULTS) for folder in folders if folder]
    return [file for file in dict.fromkeys(files) if os.path.isfile(file)]


def read_properties(location: str) -> dict[str, str]:
    """The properties in the file at a path or URL.

    Raises ConfigError when the file (or a file that it includes) does not exist, cannot be read, is not text, or
    includes itself; also for a chain of more than 50 files, and for more than 1,000 includes.
    """
    reading = _Reading(location)
    reading.read(location, ())
    return reading.values


def parse_assignments(texts: Sequence[str], flag: str) -> dict[str, str]:
    """Each KEY=VALUE as given to `flag`. Raises ConfigError, which does not show the text: it may hold a secret."""
    values = {}
    for number, text in enumerate(texts, 1):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            which = f"the {flag} number {number}" if len(texts) > 1 else flag
            raise ConfigError(
                f"{which} is not of the form KEY=VALUE", hint="write it with an =, and without blanks before it"
            )
        values[key.strip()] = value.strip()
    return values


class _Reading:
    """The values read from the file at `first` and from the files that it includes."""

    def __init__(self, first: str) -> None:
        self.values: dict[str, str] = {}
        self._first = first
        self._includes = 0

    def read(self, location: str, outer: tuple[str, ...]) -> None:
        if location in outer:
            raise ConfigError(f"the properties file {location} includes itself")
        if len(outer) >= _DEEPEST:
            raise ConfigError(f"the properties file {self._first} leads to a chain of more than {_DEEPEST} includes")
        for line in text_at(location, "the properties file").splitlines():
            key, value = _split(line)
            if key == "include" and "=" in line:
                self._count()
                check_url(value, f"an include of the properties file {location}")
                self.read(beside(location, value), (*outer, location))
            elif key:
                self.values[key] = value

    def _count(self) -> None:
        self._includes += 1
        if self._includes > _MOST_INCLUDES:
            raise ConfigError(
                f"the properties file {self._first} leads to more than {_MOST_INCLUDES} includes",
                hint="a file that is included again and again counts each time",
            )


def _split(line: str) -> tuple[str, str]:
    # Hudi makes one blank of every run of white space first, in values too.
    line = " ".join(line.split())
    if line.startswith("#") or not ("=" in line or " " in line):
        return "", ""
    key, _, value = line.partition("=" if "=" in line else " ")
    return key.strip(), value.strip()


def text_at(location: str, what: str) -> str:
    """The text of the operator's file at a path or URL; `what` names its kind in messages. Raises ConfigError."""
    try:
        return _bytes(location, what).decode("utf-8")
    except (NotFound, FileNotFoundError):
        raise ConfigError(f"{what} {location} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"{what} {location} is a folder") from None
    except (StorageError, CorruptFile, OSError) as error:
        raise ConfigError(f"{what} {location} cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {location} is no UTF-8 text at byte {error.start}") from None


def _bytes(location: str, what: str) -> bytes:
    check_url(location, f"the URL of {what}")
    if location.startswith("file://"):
        # Unlike a file of a table, it may be reached by links: mounted configuration is.
        location = open_storage(location).root
    if "://" in location:
        folder, _, name = location.rpartition("/")
        return open_storage(folder).read(name)
    with open(location, "rb") as file:
        return file.read()


def beside(location: str, name: str) -> str:
    """A file that another one names: by a path relative to its folder, or in full."""
    if "://" in name or os.path.isabs(name):
        return name
    folder, slash, _ = location.rpartition("/")
    return f"{folder}{slash}{name}"
