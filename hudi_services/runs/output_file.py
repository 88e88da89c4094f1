"""Files that a run writes for its operator, on this machine."""

import os
import tempfile

from ..errors import ConfigError, StorageError
from ..urls import check_url, is_writable_file


def check_output_file(path: str, flag: str) -> None:
    """Raise ConfigError, before any work, when nothing can be written to `path`, which is the value of `flag`."""
    check_url(path, flag)
    if not is_writable_file(path):
        raise ConfigError(f"{flag} {path} cannot be written", hint="give a file in a folder that exists")


def replace_output_file(path: str, text: str) -> None:
    """Write the file whole, or leave what is there. Raises StorageError."""
    place = os.path.realpath(path)
    try:
        if os.path.exists(place) and not os.path.isfile(place):
            # A device or a pipe, which is written to and never replaced.
            with open(place, "w", encoding="utf-8") as file:
                file.write(text)
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=os.path.dirname(place), prefix=".hudi-services-", delete=False
        ) as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                # The file is the operator's, who may want others to read it: as open() would make it.
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(file.name, 0o666 & ~mask)
                os.replace(file.name, place)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error.strerror}") from error
