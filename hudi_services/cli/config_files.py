"""Properties files of the command line, in the form that Hudi's own tools read.

    # comment                      a line that starts with #, or has neither "=" nor a blank, says nothing
    key=value                      or `key value` when the line has no "="; blanks around both do not count
    include=other.properties       the file in its place, relative to the folder of this one

No escapes and no continuation lines; the last value of a key stands. Source: DFSPropertiesConfiguration.
"""

import os
from collections.abc import Mapping

from ..errors import ConfigError, CorruptFile, NotFound, StorageError
from ..storage import ObjectStorage

_DEFAULTS = "hudi-defaults.conf"
_SYSTEM_FOLDER = "/etc/hudi/conf"
_FOLDER_VARIABLE = "HUDI_CONF_DIR"


def default_files(environment: Mapping[str, str]) -> list[str]:
    """Hudi's own conf files that exist on this machine, highest precedence first."""
    folders = [environment.get(_FOLDER_VARIABLE, ""), _SYSTEM_FOLDER]
    files = [os.path.join(folder, _DEFAULTS) for folder in folders if folder]
    return [file for file in dict.fromkeys(files) if os.path.isfile(file)]


def read_properties(location: str) -> dict[str, str]:
    """The properties in the file at a path or URL.

    Raises ConfigError when the file (or one that it includes) is not there, cannot be read, is no text, or includes
    itself.
    """
    values: dict[str, str] = {}
    _read_into(values, location, ())
    return values


def parse_assignment(text: str, flag: str) -> tuple[str, str]:
    """KEY=VALUE as given to `flag`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{flag} {text} is not of the form KEY=VALUE")
    return key.strip(), value.strip()


def _read_into(values: dict[str, str], location: str, outer: tuple[str, ...]) -> None:
    if location in outer:
        raise ConfigError(f"the properties file {location} includes itself")
    for line in _text(location).splitlines():
        key, value = _split(line)
        if key == "include" and "=" in line:
            _read_into(values, _beside(location, value), (*outer, location))
        elif key:
            values[key] = value


def _split(line: str) -> tuple[str, str]:
    # Hudi makes one blank of every run of white space first, in values too.
    line = " ".join(line.split())
    if line.startswith("#") or not ("=" in line or " " in line):
        return "", ""
    key, _, value = line.partition("=" if "=" in line else " ")
    return key.strip(), value.strip()


def _text(location: str) -> str:
    try:
        return _bytes(location).decode("utf-8")
    except (NotFound, FileNotFoundError):
        raise ConfigError(f"the properties file {location} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"the properties file {location} is a folder") from None
    except (StorageError, CorruptFile, OSError) as error:
        raise ConfigError(f"the properties file {location} cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the properties file {location} is no UTF-8 text at byte {error.start}") from None


def _bytes(location: str) -> bytes:
    if location.startswith("file://"):
        # Unlike what is a table's, it may be reached by links: mounted configuration is.
        location = ObjectStorage(location).root
    if "://" in location:
        folder, _, name = location.rpartition("/")
        return ObjectStorage(folder).read(name)
    with open(location, "rb") as file:
        return file.read()


def _beside(location: str, name: str) -> str:
    if "://" in name or os.path.isabs(name):
        return name
    folder, slash, _ = location.rpartition("/")
    return f"{folder}{slash}{name}"
