"""Make the table of docs/support.md from the features that the code refuses: python -m scripts.make_support_table"""

from pathlib import Path

from hudi_services.table.support import FEATURES, Operation
from hudi_services.versions import VERSIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "support.md"
BEGIN, END = "<!-- made by scripts/make_support_table.py -->", "<!-- end -->"


def table() -> str:
    """The table in Markdown: a row for each feature, with the commands that refuse it."""
    rows = ["| feature | recognised by | refused by | what to do |", "|---|---|---|---|"]
    for one in FEATURES:
        refused = "every command" if one.refused == frozenset(Operation) else _commands(one.refused)
        rows.append(f"| {one.name} | `{one.told_by}` | {refused} | {one.hint} |")
    versions = ", ".join(map(str, VERSIONS))
    return f"Table versions {versions} are supported; every command refuses others.\n\n" + "\n".join(rows) + "\n"


def _commands(operations: frozenset[Operation]) -> str:
    return ", ".join(f"`{one.value}`" for one in Operation if one in operations)


def page(text: str) -> str:
    """`text` with a new table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
