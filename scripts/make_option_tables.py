"""Make the tables of docs/configuration.md of keys that are no options: python -m scripts.make_option_tables"""

from pathlib import Path

from hudi_services.options.idle_keys import BY_REASON, PREFIXES
from hudi_services.options.not_honoured import (
    DELETE_INDEXES,
    DELETE_STATISTICS,
    KEPT,
    MAKE_INDEXES,
    NOT_HONOURED,
    NOT_MADE,
    NotHonoured,
)
from hudi_services.options.option import Phase

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
_COMMANDS = {
    Phase.CREATE: "`create`",
    Phase.INGEST: "`write`",
    Phase.PLAN: "`schedule`",
    Phase.WRITE: "`execute`, `compact`",
    Phase.COMPACTION: "the plan of a compaction",
    Phase.CLEAN: "`clean`",
    Phase.ARCHIVE: "`archive`",
    Phase.REPAIR: "`rollback`, `undo`, `recover`, `validate`, `orphan-files`",
}


def tables() -> dict[str, str]:
    """The tables in Markdown, by their names."""
    refused = {key: one for key, one in NOT_HONOURED.items() if one.refused}
    warned = {key: one for key, one in NOT_HONOURED.items() if not one.refused}
    return {"refused keys": _table(refused), "keys with a warning": _table(warned) + _indexes(), "idle keys": _idle()}


def _table(keys: dict[str, NotHonoured]) -> str:
    heading = ["| key | harmless values | what is done | refused by | a warning by |", "|---|---|---|---|---|"]
    return "\n".join([*heading, *(_row(key, one) for key, one in keys.items())]) + "\n"


def _row(key: str, one: NotHonoured) -> str:
    harmless = ", ".join(f"`{value}`" for value in one.harmless) or "–"
    return f"| `{key}` | {harmless} | {one.what} | {_by(one.refused)} | {_by(one.warned & ~one.refused)} |"


def _by(phases: Phase) -> str:
    if Phase.ANY in phases:
        return "every command"
    return ", ".join(name for phase, name in _COMMANDS.items() if phase & phases) or "–"


def _indexes() -> str:
    rows = ["| key | `true` | `false` |", "|---|---|---|"]
    for key, name in {**MAKE_INDEXES, **DELETE_INDEXES, **DELETE_STATISTICS}.items():
        made = NOT_MADE if key in MAKE_INDEXES else "–"
        shown = f"{name}…" if name.endswith("_") else "metadata table" if name == "files" else name
        rows.append(f"| `{key}` | {made} | {KEPT.format(shown)} |")
    return "\n" + "\n".join(rows) + "\n"


def _idle() -> str:
    rows = ["| why | keys |", "|---|---|"]
    rows += [f"| {why} | {' '.join(f'`{key}`' for key in keys.split())} |" for why, keys in BY_REASON.items()]
    rows += [f"| {why} | all others that begin with `{prefix}` |" for prefix, why in PREFIXES.items()]
    return "\n".join(rows) + "\n"


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a table."""
    return f"<!-- {name}, made by scripts/make_option_tables.py -->", f"<!-- end of {name} -->"


def page(text: str) -> str:
    """`text` with new tables between their marks."""
    for name, table in tables().items():
        begin, end = marks(name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n\n{table}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
