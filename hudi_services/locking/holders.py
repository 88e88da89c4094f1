"""The holders of locks in words for an operator."""

import time
from typing import Any

from ..codecs.json_text import parse_json

_SHOWN = 80
"""Characters that are shown of what a lock says of its holder."""


def readable(millis: int) -> str:
    """A time in epoch milliseconds as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(millis / 1000))


def fields(content: bytes) -> dict[str, Any]:
    """The fields of a lock's JSON object; {} for anything else."""
    try:
        found = parse_json(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def named(content: bytes, field: str) -> str:
    """The name of the holder in a field of a lock's JSON object, in parentheses; "" where it is not there."""
    name = fields(content).get(field)
    return f" ({name[:_SHOWN]})" if isinstance(name, str) and name else ""
