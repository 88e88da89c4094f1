r"""java.util.Properties text.

ISO-8859-1 bytes; one `key=value` (or `key:value`, `key value`) on each line, `#` and `!` start comment lines, blank
lines are ignored, an odd number of backslashes at a line's end continues it (leading blanks of the next line are
dropped). Escapes: `\t \n \r \f \\ \: \= \# \! \ ` and `\uXXXX` (UTF-16 units); a backslash before any other character
is dropped.
Source: java.util.Properties (load, store).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ..errors import CorruptFile

_LINE_END = re.compile(rb"\r\n|\r|\n")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_REVERSE = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
_BLANKS = " \t\f"
_KEY_END = _BLANKS + "=:"


def parse_properties(data: bytes, path: str) -> dict[str, str]:
    """The keys and values of a properties file; the last one of a repeated key wins.

    Raises CorruptFile, naming `path` and the byte offset, for control characters (no properties file holds a NUL)
    and malformed unicode escapes.
    """
    properties = {}
    for offset, line in _logical_lines(data):
        _refuse_controls(line, path, offset)
        key, value = _split(line)
        properties[_unescape(key, path, offset)] = _unescape(value, path, offset)
    return properties


def format_properties(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """The file of these properties: comment lines, then one line a key, in the order of the mapping."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _logical_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """(offset, text) of each line that is neither blank nor a comment, continuations joined."""
    start, joined = 0, ""
    offset = 0
    for raw in _LINE_END.split(data):
        line = raw.decode("iso-8859-1").lstrip(_BLANKS)
        if not joined:
            start = offset
        # Each \r\n counts as one byte, so later offsets are too small; they are only for messages.
        offset += len(raw) + 1
        if not joined and (not line or line[0] in "#!"):
            continue
        if _continues(line):
            joined += line[:-1]
            continue
        if joined or line:
            yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _refuse_controls(line: str, path: str, offset: int) -> None:
    for position, char in enumerate(line):
        if (char < " " and char not in "\t\f") or char == "\x7f":
            raise CorruptFile(
                f"{path} is no properties file: byte 0x{ord(char):02x} in the line at {offset + position}"
            )


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in _KEY_END:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, path: str, offset: int) -> str:
    if "\\" not in text:
        return text
    out = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                char = _unicode_escape(text[at : at + 4], path, offset)
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        out.append(char)
    try:
        # Escapes are UTF-16 units: join the surrogate pairs.
        return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as e:
        raise CorruptFile(f"{path} has half a surrogate pair in the line at {offset}") from e


def _unicode_escape(digits: str, path: str, offset: int) -> str:
    if len(digits) != 4 or not all(d in "0123456789abcdefABCDEF" for d in digits):
        raise CorruptFile(f"{path} has a malformed \\u escape in the line at {offset}")
    return chr(int(digits, 16))


def _escape(text: str, *, is_key: bool) -> str:
    out = []
    for position, char in enumerate(text):
        if char == " " and (is_key or position == 0):
            out.append("\\ ")
        elif char in _REVERSE:
            out.append(_REVERSE[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)
