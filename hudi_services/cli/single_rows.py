"""Lists of one row in words, where the names of their columns do not say what is meant; --verbose has all columns."""

from ..runs.report_rows import NewFilesRow, PublicationRow, Row, SkippingRow, Values
from ..units import counted, size_text
from .cells import cell


def words_of(row: Row) -> str:
    """What the only row of a list says."""
    if isinstance(row, NewFilesRow):
        return _new_files(row)
    if isinstance(row, SkippingRow):
        before, after = (cell("files", number) for number in (row.read_before, row.read_after))
        read = f"a filter on {row.column} read {before} of {counted(row.files_before, 'old file')} on average"
        return f"{read}, and reads {after} of {counted(row.files_after, 'new file')}"
    if isinstance(row, PublicationRow):
        return f"writers saw the plan as pending for {row.pending_seconds:g} s"
    return _by_columns(vars(row))


def _new_files(row: NewFilesRow) -> str:
    if row.files == 1:
        return f"1 file of {size_text(row.max_bytes)}"
    return (
        f"{counted(row.files, 'file')}, the median {size_text(row.p50_bytes)}, the largest {size_text(row.max_bytes)}"
    )


def _by_columns(row: Values) -> str:
    told = (
        (field.removesuffix("_bytes").replace("_", " "), cell(field, value)) for field, value in row.items() if value
    )
    return ", ".join(f"{name} {text}" for name, text in told) or "nothing"
