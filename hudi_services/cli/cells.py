"""Values of a report as people read them."""

from ..runs.report_rows import Value
from ..units import size_text
from .terminal import harmless


def cell(field: str, value: Value) -> str:
    """The text of a field's value; fields that end in `bytes` are sizes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and field.endswith("bytes"):
        return size_text(value)
    if isinstance(value, float) and value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int | float) else harmless(value)
