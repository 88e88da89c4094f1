"""Bounds of texts that hold for two orders: of UTF-8 bytes, which is that of code points, and of Java's strings.

Java compares UTF-16 units. A character beyond U+FFFF is two of them, from U+D800 on, and so comes before the characters
from U+E000 to U+FFFF, which it follows by code point. In all other pairs of characters the two orders agree, so:

- a text without characters from U+E000 to U+FFFF, that is least by code point, is least for Java;
- a text without characters beyond U+FFFF, that is greatest by code point, is greatest for Java.
"""

import re
import sys

_LATE_FOR_JAVA = re.compile("[\ue000-\uffff]")
_BEYOND = re.compile(f"[\U00010000-{chr(sys.maxunicode)}]")
_LAST = "\uffff"


def lower_bound(least: str) -> str:
    """A text that is not after `least`, nor for Java after any text that is not before it by code point."""
    found = _LATE_FOR_JAVA.search(least)
    return least if found is None else least[: found.start()]


def upper_bound(greatest: str) -> str | None:
    """A text that is not before `greatest`, nor for Java before any text that is not after it by code point.

    None where there is none: only characters beyond U+FFFF come after those that `greatest` begins with.
    """
    found = _BEYOND.search(greatest)
    if found is None:
        return greatest
    start = greatest[: found.start()].rstrip(_LAST)
    return start[:-1] + _successor(start[-1]) if start else None


def java_order(text: str) -> bytes:
    """Compares as Java compares strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _successor(character: str) -> str:
    # No text has the numbers between: they are the halves of characters beyond U+FFFF.
    return "\ue000" if character == "\ud7ff" else chr(ord(character) + 1)
