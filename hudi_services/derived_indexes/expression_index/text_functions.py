"""Spark SQL's functions of texts on Arrow arrays, exactly as the JVM computes them.

Upper and lower case are those of Java 17, which maps by word (`ß` becomes `SS`, a Σ that ends a word `ς`); Arrow maps
letter by letter, so texts with such letters are mapped one by one. Letters whose case came into Unicode after Java 17
are refused: another Java would give other texts, and an index of them would hide rows.
Source: UTF8String, StringTrim, Substring of Apache Spark 3.5.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnsupportedTable

_YOUNG = (
    "\u1c89\u1c8a\u2c2f\u2c5f\ua7c0\ua7c1\ua7cb-\ua7dc\U00010570-\U000105bc\U00010d50-\U00010d85\U00016ea0-\U00016ed3"
)
_BESIDE_SIGMA = r"[^\p{Greek}\p{Latin}\s,]"
"""Java and Unicode decide differently whether a word ends at a sigma that is next to digits and other signs."""
_UNSURE_LOWER = f"[{_YOUNG}]|{_BESIDE_SIGMA}\u03a3|\u03a3{_BESIDE_SIGMA}"
_UNSURE_UPPER = f"[{_YOUNG}\u019b\u0264]"
_WORDY_LOWER = "[\u0130\u03a3]"
_WORDY_UPPER = "[\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50-\u1ffc\ufb00-\ufb17]"


def lower(texts: pa.Array) -> pa.Array:
    """The texts in lower case. Raises UnsupportedTable for letters that not every Java maps alike."""
    return _cased(texts, pc.utf8_lower, str.lower, _WORDY_LOWER, _UNSURE_LOWER)


def upper(texts: pa.Array) -> pa.Array:
    """The texts in upper case. Raises UnsupportedTable for letters that not every Java maps alike."""
    return _cased(texts, pc.utf8_upper, str.upper, _WORDY_UPPER, _UNSURE_UPPER)


def length(texts: pa.Array) -> pa.Array:
    """The length of each text in code points."""
    return pc.utf8_length(texts)


def trimmer(trim: Callable[..., pa.Array], characters: str) -> Callable[[pa.Array], pa.Array]:
    """A function that trims any of `characters`, by one of Arrow's three trims."""
    return lambda texts: trim(texts, characters=characters) if characters else texts


def substring(position: int, count: int) -> Callable[[pa.Array], pa.Array]:
    """A function that takes `count` code points from `position` on, which counts from 1, or from -1 at the end; 0 is 1.

    Positions before the beginning of a text count, but give no code points.
    """
    start = position - 1 if position > 0 else position
    stop: int | None = start + max(count, 0)
    if start < 0 and start + max(count, 0) >= 0:
        stop = None

    def cut(texts: pa.Array) -> pa.Array:
        if count <= 0:
            return pc.if_else(pc.is_valid(texts), "", texts)
        return pc.utf8_slice_codeunits(texts, start, stop)

    return cut


def _cased(
    texts: pa.Array, simple: Callable[[pa.Array], pa.Array], exact: Callable[[str], str], wordy: str, unsure: str
) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, unsure)).as_py():
        raise UnsupportedTable("there are letters whose upper and lower case depend on the release of Java")
    mapped = simple(texts)
    odd = pc.match_substring_regex(texts, wordy)
    if not pc.any(odd).as_py():
        return mapped
    distinct = pc.unique(texts.filter(odd))
    words = pa.array([exact(text) for text in distinct.to_pylist()], pa.string())
    return pc.if_else(odd, words.take(pc.index_in(texts, distinct)), mapped)
