"""Quantities as people read them."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(count: int | None) -> str:
    """A number of bytes with three significant digits and its unit."""
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} {_UNITS[0]}" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"
