"""Make the tables of docs/configuration.md from the declarations of keys: python -m scripts.make_option_tables"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from hudi_services.options.not_honoured import KEPT, NOT_MADE
from hudi_services.options.option import Idle, IndexSwitch, NotHonoured, Phase, Section
from hudi_services.options.registry import KNOWN, OPTIONS, SECTIONS
from hudi_services.options.resolve import as_text

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
    keys = KNOWN.all_of(NotHonoured)
    return {
        **{section.title: _options(section) for section in SECTIONS},
        "refused keys": _not_honoured(one for one in keys if one.refused),
        "keys with a warning": _not_honoured(one for one in keys if not one.refused) + "\n" + _indexes(),
        "idle keys": _idle(),
    }


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (heading, *rows)]
    return "".join([lines[0], "|---" * len(heading), "|\n", *lines[1:]])


def _options(section: Section) -> str:
    rows = (
        (
            f"`{one.key}`",
            f"`{default}`" if (default := as_text(one.default)) else "–",
            one.in_table.text,
            one.description,
        )
        for one in section.options
    )
    return _table(("key", "default", "by the table", "meaning"), rows)


def _not_honoured(keys: Iterable[NotHonoured]) -> str:
    rows = (
        (
            f"`{one.key}`",
            ", ".join(f"`{value}`" for value in one.harmless) or "–",
            one.what,
            _by(one.refused),
            _by(one.warned & ~one.refused),
        )
        for one in keys
    )
    return _table(("key", "harmless values", "what is done", "refused by", "a warning by"), rows)


def _by(phases: Phase) -> str:
    if Phase.ANY in phases:
        return "every command"
    return ", ".join(name for phase, name in _COMMANDS.items() if phase & phases) or "–"


def _indexes() -> str:
    made = {one.key: NOT_MADE for one in KNOWN.all_of(IndexSwitch) if one.makes}
    rows = []
    for one in (*KNOWN.all_of(IndexSwitch), *(one for one in OPTIONS if one.keeps)):
        shown = f"{one.keeps}…" if one.keeps.endswith("_") else "metadata table" if one.keeps == "files" else one.keeps
        rows.append((f"`{one.key}`", made.get(one.key, "–"), KEPT.format(shown)))
    return _table(("key", "`true`", "`false`"), rows)


def _idle() -> str:
    keys: dict[str, list[str]] = {}
    prefixes = []
    for one in KNOWN.all_of(Idle):
        if one.key.endswith("."):
            prefixes.append((one.reason, f"all others that begin with `{one.key}`"))
        else:
            keys.setdefault(one.reason, []).append(f"`{one.key}`")
    return _table(("why", "keys"), [*((why, " ".join(found)) for why, found in keys.items()), *prefixes])


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a table."""
    return f"<!-- {name}, made by scripts/make_option_tables.py -->", f"<!-- end of {name} -->"


def page(text: str) -> str:
    """`text` with new tables between their marks. Raises ValueError where a mark is missing."""
    for name, table in tables().items():
        begin, end = marks(name)
        text = f"{text[: text.index(begin)]}{begin}\n\n{table}\n{text[text.index(end) :]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
