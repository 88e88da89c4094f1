"""Quantities as people read them."""

_UNITS = ("", "KiB", "MiB", "GiB", "TiB", "PiB")


def counted(count: int, noun: str) -> str:
    """A number of things: `1 file`, `2,500 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size_text(count: int | None) -> str:
    """A number of bytes with three significant digits and its unit."""
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{count} byte{'' if count == 1 else 's'}"
    # From here on three digits would be told with an exponent.
    return f"{value:.0f} {_UNITS[unit]}" if value >= 999.5 else f"{value:.3g} {_UNITS[unit]}"
