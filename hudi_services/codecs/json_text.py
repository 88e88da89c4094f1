"""JSON from a table's files, parsed within bounds.

JSON of an honest writer has more text than brackets. Each `{}` of three bytes takes a hundred bytes of memory, so a
large text that is mostly brackets is refused before it is parsed.
"""

import json
import math
import re
from typing import Any

_LARGE = 1 << 20
_BYTES_PER_BRACKET = 8
"""The fewest in a large text. The densest texts of Hudi are schemas, with 16; its commits have 300."""
_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(data: bytes | str) -> Any:
    """The value of a UTF-8 text. Raises ValueError for a text that is not JSON, and for JSON that is refused.

    It refuses too deep nesting, numbers beyond a double, NaN and Infinity, half a surrogate pair, and mostly brackets.
    """
    text = data if isinstance(data, str) else data.decode()
    if len(text) > _LARGE and (text.count("{") + text.count("[")) * _BYTES_PER_BRACKET > len(text):
        raise ValueError(f"{len(text)} characters that are mostly brackets")
    try:
        value = _DECODER.decode(text)
        if "\\u" in text and _HALF_A_PAIR.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as e:
        raise ValueError("it is nested too deeply") from e
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text:.40}")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
