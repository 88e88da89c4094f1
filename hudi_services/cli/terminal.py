"""stdout and stderr: text that does nothing to a terminal, on streams that may be closed, full or of ASCII only."""

import contextlib
import json
import logging
import os
import re
import sys
from typing import TextIO

from ..urls import message_without_secrets

# Control characters, what turns the direction of writing, what ends a line, and halves of characters, which no encoding
# has. A terminal obeys the first (titles, colours, its answers typed as input), a reader is deceived by the others.
_ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""One line of `text`, with characters that act instead of being seen as \x1b or \u202e."""
    return _ACTIVE.sub(lambda found: _escaped(found[0]), text)


def harmless_lines(text: str) -> str:
    """As `harmless`, but line ends stay."""
    return "\n".join(harmless(line) for line in text.split("\n"))


def told(text: str) -> str:
    """One line that says something: harmless, and without secrets of URLs, wherever it got them from."""
    return harmless(message_without_secrets(text))


def told_lines(text: str) -> str:
    """As `told`, but line ends stay."""
    return harmless_lines(message_without_secrets(text))


def harmless_json(document: object, *, ascii_only: bool = False) -> str:
    """`document` as JSON on several lines; letters of all languages stay readable unless `ascii_only`."""
    text = json.dumps(document, indent=2, ensure_ascii=ascii_only)
    # Beyond the layout of the document they stand in strings, where this is JSON's own way to write them.
    return "\n".join(_ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


def put(stream: TextIO | None, text: str) -> str:
    """Write it out; what the encoding lacks is escaped. Returns why it could not be written, "" when it was."""
    if stream is None:
        return "it is closed"
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ""


def is_unicode(stream: TextIO | None) -> bool:
    """Whether it takes all characters."""
    return stream is None or (stream.encoding or "utf-8").lower().replace("-", "").startswith("utf")


def warn(message: str) -> bool:
    """A warning, as a line on stderr. Returns whether it could be told."""
    return not put(sys.stderr, f"warning: {told(message)}\n")


def fail(message: str, hint: str) -> bool:
    """An error and the way out, as lines on stderr. Returns whether it could be told."""
    text = f"error: {told(message)}\n"
    return not put(sys.stderr, f"{text}hint: {told(hint)}\n" if hint else text)


class LineFormatter(logging.Formatter):
    """Of the log: one line for a message, and harmless ones for a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return told(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return told_lines(super().formatException(ei))  # type: ignore[arg-type]


def open_closed_streams() -> None:
    """Give what the shell closed (`>&-`) to /dev/null.

    The next file to be opened would get its number, and with it all that libraries print below Python.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def drop_unwritten() -> None:
    """What can still not be written goes to /dev/null: Python would complain while it ends, and make the code 120."""
    for stream in (sys.stdout, sys.stderr):
        if put(stream, ""):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
