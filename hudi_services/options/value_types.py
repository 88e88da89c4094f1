"""The types of options: functions from text to a value.

A type raises ValueError with the rest of the sentence "<key>=<value> …".
Source of the rules: ConfigProperty and HoodieConfig of Apache Hudi (sizes are plain bytes, enums go by upper case).
"""

import re
from collections.abc import Callable, Mapping

from ..errors import ConfigError
from ..urls import check_url

_IN_PYTHON = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INSTANT = re.compile(r"[0-9]{1,17}")
_LARGEST = (1 << 63) - 1
_SIZE = re.compile(r"([0-9]{1,19})(?:([kmgt])b?|b)?")
_TIME = re.compile(r"([0-9]{1,9})([smh])")
_ENDPOINT = re.compile(r"(https?://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
LEAST_MEMORY = 64 << 20
"""Bytes that the data of one task gets at least."""
NO_NAMES: tuple[str, ...] = ()
DAY_MILLIS = 86_400_000
CENTURY_HOURS = 876_000
"""A larger value is a mistake, and beyond the range of times."""
CENTURY_MINUTES = 60 * CENTURY_HOURS


def text(value: str) -> str:
    return value


def names(value: str) -> tuple[str, ...]:
    """A comma list; blanks around items and empty items do not count."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def boolean(value: str) -> bool:
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return lowered == "true"


def integer(minimum: int, maximum: int = _LARGEST) -> Callable[[str], int]:
    """Whole numbers from `minimum` to `maximum`."""

    def parse(value: str) -> int:
        if not _INTEGER.fullmatch(value):
            raise ValueError("is not a whole number")
        number = int(value)
        if number < minimum:
            raise ValueError(f"is less than {minimum}")
        if number > maximum:
            raise ValueError(f"is more than {maximum}")
        return number

    return parse


def instant(value: str) -> str:
    """An instant or the beginning of one; "" for none."""
    if value and not _INSTANT.fullmatch(value):
        raise ValueError("is no instant (yyyyMMddHHmmssSSS)")
    return value


def size(value: str) -> int:
    """Bytes, at least one."""
    try:
        return integer(1)(value)
    except ValueError as error:
        raise ValueError(f"{error}: a size is a whole number of bytes, at least 1") from None


def bytes_of(value: str, unit: str = "") -> int | None:
    """The bytes of a size in Spark's notation: 512m or 512mb, in any case, with k, m, g or t for powers of 1024.

    A number by itself is in `unit` ("" for bytes). None for text that is not a size, or more than 2**63 - 1 bytes.
    """
    lowered = value.strip().lower()
    match = _SIZE.fullmatch(lowered)
    if match is None:
        return None
    found = int(match[1]) * _UNITS.get(unit if lowered.isdecimal() else match[2], 1)
    return found if found <= _LARGEST else None


def memory(value: str) -> int:
    """Bytes, at least 64 MiB, as `bytes_of` reads them."""
    found = bytes_of(value)
    if found is None:
        raise ValueError("is no size, as 512m or 4g")
    if found < LEAST_MEMORY:
        raise ValueError("is less than 64m")
    return found


def seconds(value: str) -> int:
    """Seconds of a text such as 90s, 30m or 2h."""
    match = _TIME.fullmatch(value.strip().lower())
    if match is None:
        raise ValueError("is no time, as 90s, 30m or 2h")
    found = int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]
    if not 1 <= found <= CENTURY_HOURS * 3600:
        raise ValueError("is no time that a run may take")
    return found


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError("is not a number") from None


def fraction(value: str) -> float:
    """A number between 0 and 1, both excluded."""
    number = _number(value)
    if not 0 < number < 1:
        raise ValueError("does not lie between 0 and 1")
    return number


def share(value: str) -> float:
    """A number from 0 to 1000."""
    number = _number(value)
    if not 0 <= number <= 1_000:
        raise ValueError("does not lie between 0 and 1000")
    return number


def factor(value: str) -> float:
    """A number from 1 to a million."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 1e6:
        raise ValueError("is no number from 1 to a million")
    return number


def choice(*allowed: str, undone: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """One of `allowed` (upper case), in any case.

    `undone` are names (upper case) that Hudi takes and that cannot be carried out here, each with the end of the
    sentence that says so.
    """

    def parse(value: str) -> str:
        name = value.upper()
        if undone and name in undone:
            raise ValueError(undone[name])
        if name not in allowed:
            raise ValueError(f"is none of {', '.join(allowed)}")
        return name

    return parse


def only(allowed: str) -> Callable[[str], str]:
    """The one value that is supported, in any case."""

    def parse(value: str) -> str:
        if value.lower() != allowed.lower():
            raise ValueError(f"is not supported; only {allowed} is")
        return allowed

    return parse


def nothing(value: str) -> str:
    """No value: the option is not supported."""
    if value:
        raise ValueError("is not supported")
    return value


def one_of(meanings: Mapping[str, str], refusal: str, undone: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """The entry of `meanings` for the text; `refusal` is the error for any other text, `undone` as in `choice`."""

    def parse(value: str) -> str:
        if undone and value in undone:
            raise ValueError(undone[value])
        if value not in meanings:
            raise ValueError(refusal)
        return meanings[value]

    return parse


def pattern(value: str) -> str:
    """A regular expression, checked to compile."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return value


def url(value: str) -> str:
    """A path, or a URL that holds nothing but a place."""
    try:
        check_url(value, "it")
    except ConfigError as error:
        raise ValueError(f"cannot be taken: {error.message}") from None
    return value


def endpoint(value: str) -> str:
    """The URL of a service, which may have a port; https:// without a scheme. Nothing more: it is shown."""
    match = _ENDPOINT.fullmatch(value)
    if value and match is None:
        raise ValueError("is no endpoint: write https://host, http://host:port, or host")
    return value if match is None or match[1] else f"https://{value}"


def is_code(value: str) -> bool:
    """Whether `value` names Python code, in the form that `named` accepts."""
    return _IN_PYTHON.fullmatch(value) is not None


def function_name(*known: str) -> Callable[[str], str]:
    """One of `known`, or a Python function as `package.module:function`."""
    return named({name: name for name in known}, "function")


def named(meanings: Mapping[str, str], kind: str, undone: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """The entry of `meanings` for the text, or the text itself when it is `package.module:<kind>`.

    Names of classes have dots, and must match exactly; other names match in any case. `undone` as in `choice`.
    """
    short_names = {name.lower(): meaning for name, meaning in meanings.items() if "." not in name}

    def parse(value: str) -> str:
        meaning = meanings.get(value) or short_names.get(value.lower())
        if meaning is not None:
            return meaning
        if undone and value in undone:
            raise ValueError(undone[value])
        if not _IN_PYTHON.fullmatch(value):
            short = ", ".join(sorted(set(meanings.values())))
            raise ValueError(f"is neither {short} nor of the form package.module:{kind}")
        return value

    return parse


def some_of(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """A comma list of some of `allowed` (upper case), in any case, none of them twice."""
    one = choice(*allowed)

    def parse(value: str) -> tuple[str, ...]:
        found = tuple(one(name) for name in names(value))
        if not found or len(set(found)) < len(found):
            raise ValueError(f"is no list of {', '.join(allowed)}")
        return found

    return parse
