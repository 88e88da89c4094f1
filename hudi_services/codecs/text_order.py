"""Bounds of texts that hold in two orders: by code point, which is also by UTF-8 bytes, and as Java compares strings.

Java compares UTF-16 units. A character beyond U+FFFF has two units, the first from U+D800 on: for Java it comes before
the characters from U+E000 to U+FFFF, by code point after them. For all other pairs of characters the orders agree, so:

- if the least text by code point has no characters from U+E000 to U+FFFF, it is the least for Java;
- if the greatest text by code point has no characters beyond U+FFFF, it is the greatest for Java.
"""

import re
import sys

_LATE_FOR_JAVA = re.compile("[\ue000-\uffff]")
_BEYOND = re.compile(f"[\U00010000-{chr(sys.maxunicode)}]")
_LAST = "\uffff"


def lower_bound(least: str) -> str:
    """A lower bound, in both orders, of all texts that are not before `least` by code point."""
    found = _LATE_FOR_JAVA.search(least)
    return least if found is None else least[: found.start()]


def upper_bound(greatest: str) -> str | None:
    """An upper bound, in both orders, of all texts that are not after `greatest` by code point.

    None when no such text exists: only characters beyond U+FFFF come after those that `greatest` begins with.
    """
    found = _BEYOND.search(greatest)
    if found is None:
        return greatest
    start = greatest[: found.start()].rstrip(_LAST)
    return start[:-1] + _successor(start[-1]) if start else None


def java_order(text: str) -> bytes:
    """A key that compares as Java compares strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _successor(character: str) -> str:
    # The numbers between are no characters: they are the halves of characters beyond U+FFFF.
    return "\ue000" if character == "\ud7ff" else chr(ord(character) + 1)
