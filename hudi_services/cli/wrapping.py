"""Texts in lines of a width in cells, in which commands of this program can still be copied."""

import re
from collections.abc import Iterator

_COMMAND = re.compile(r"hudi-services(?: [a-z][a-z-]*)?(?: --?[\w-]+(?:[ =](?!-)(?:\\.|[^\s;,\\])+)?)*")
"""A command of this program in a text: its name, and its flags with their values."""
_UNITS = "bytes|[KMGTP]iB|s|ms|seconds?|minutes?|hours?|days?"
_WORD = re.compile(rf"(?:\\.|\S)*\d (?:{_UNITS})\b(?:\\.|\S)*|(?:\\.|\S)+")
"""A word: numbers stay with their units, and words of commands with the spaces that they quote."""


def wrapped(text: str, width: int, *, folds: bool = True) -> list[str]:
    r"""`text` in lines of at most `width` cells.

    Commands of this program that are broken end their lines with `\`, so that a shell takes what is copied. Words that
    are longer than a line are broken only if it `folds`.
    """
    lines, line, is_open = list[str](), "", False
    for word, is_inside, goes_on in _words(text, width):
        if line.strip() and cells_of(line) + 1 + cells_of(word) + (2 if goes_on else 0) > width:
            lines.append(f"{line} \\" if is_open else line)
            line = ""
        elif line.strip():
            line += " "
        while folds and cells_of(line + word) + (2 if goes_on else 0) > width:
            head = first_cells(word, max(1, width - cells_of(line) - 2)) or word[0]
            if head.endswith("\\") and len(head) > 1:
                head = head[:-1]
            lines.append(f"{line}{head}\\" if is_inside else line + head)
            line, word = "", word[len(head) :]
        line, is_open = line + word, goes_on
    return [*lines, line]


def cells_of(text: str) -> int:
    """The width of `text` on a terminal: letters of some languages are two cells wide."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def first_cells(text: str, cells: int) -> str:
    """The first characters of `text`, as many as `cells` have room for."""
    for count, character in enumerate(text):
        cells -= cells_of(character)
        if cells < 0:
            return text[:count]
    return text


def _words(text: str, width: int) -> Iterator[tuple[str, bool, bool]]:
    """Each word, whether it is in a command, and whether the command goes on after it. A flag stays with
    its value, where a line of `width` cells has room for both."""
    commands = [(found.start(), found.end()) for found in _COMMAND.finditer(text)]
    flag = ""
    for found in _WORD.finditer(text):
        end = next((end for start, end in commands if start <= found.start() < end), 0)
        goes_on = found.end() < end
        if flag and (found[0].startswith("-") or cells_of(f"{flag} {found[0]} \\") > width):
            yield flag, True, True
            flag = ""
        if goes_on and found[0].startswith("-") and not flag:
            flag = found[0]
            continue
        yield f"{flag} {found[0]}".strip(), end > 0, goes_on
        flag = ""
