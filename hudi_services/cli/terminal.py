"""Writes text that cannot control a terminal to stdout and stderr, which may be closed, full or ASCII only."""

import contextlib
import json
import logging
import os
import re
import sys
from typing import TextIO

from ..urls import message_without_secrets
from .wrapping import wrapped

# Control characters, characters that turn the direction of writing or end a line, and halves of characters, which no
# encoding has. A terminal obeys the first (titles, colours, its answers typed as input); the others deceive a reader.
_ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""`text` as one line, in which characters that act instead of being seen are written as \x1b or \u202e."""
    return _ACTIVE.sub(lambda found: _escaped(found[0]), text)


def harmless_lines(text: str) -> str:
    """As `harmless`, but line ends stay."""
    return "\n".join(harmless(line) for line in text.split("\n"))


def told(text: str) -> str:
    """`text` as one line for the operator: harmless, and without the secrets of URLs."""
    return harmless(message_without_secrets(text))


def told_lines(text: str) -> str:
    """As `told`, but line ends stay."""
    return harmless_lines(message_without_secrets(text))


def harmless_json(document: object, *, ascii_only: bool = False) -> str:
    """`document` as JSON on several lines; letters of all languages stay readable unless `ascii_only`."""
    text = json.dumps(document, indent=2, ensure_ascii=ascii_only)
    if text.replace("\n", "").isprintable():
        return text
    # Apart from line ends, these characters are only in strings, where this is JSON's own way to write them.
    return "\n".join(_ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


def put(stream: TextIO | None, text: str) -> str:
    """Write `text`; characters that the encoding lacks are escaped. Returns why that failed, or "" when it did not."""
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
    """Whether the stream takes all characters."""
    return stream is None or (stream.encoding or "utf-8").lower().replace("-", "").startswith("utf")


def warn(message: str) -> bool:
    """Write a warning as a line to stderr. Returns whether it could be written."""
    return not put(sys.stderr, _lines(f"warning: {told(message)}"))


def fail(message: str, hint: str) -> bool:
    """Write an error and its hint as lines to stderr. Returns whether they could be written."""
    text = _lines(f"error: {told(message)}")
    return not put(sys.stderr, f"{text}{_lines(f'hint: {told(hint)}')}" if hint else text)


def _lines(text: str) -> str:
    """`text` as a line, as a log has it; on a terminal in lines that are broken between words."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr and sys.stderr.isatty() else 0
    except (OSError, ValueError):
        width = 0
    # A path that is longer than a line is left to the terminal, which breaks it so that it can be copied.
    return "".join(f"{line}\n" for line in (wrapped(text, width, folds=False) if width else [text]))


class LineFormatter(logging.Formatter):
    """The formatter of the log: one line for a message, and harmless lines for a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return told(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return told_lines(super().formatException(ei))  # type: ignore[arg-type]


def open_closed_streams() -> None:
    """Open standard streams that the shell closed (`>&-`) on /dev/null.

    Otherwise the next file that is opened gets the number, and with it all that libraries print below Python.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def drop_unwritten() -> None:
    """Send output that still cannot be written to /dev/null: Python would complain while it ends, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        if put(stream, ""):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
