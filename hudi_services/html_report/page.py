"""The page: its head, the verdict, the findings of doctor, and the sections."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import timezone
from importlib import resources

from .._version import __version__
from ..runs.report import NamedCheck
from ..runs.report_rows import HealthFindingRow
from ..units import size_text
from .clusterings_section import clusterings_section
from .markup import Element, as_html, element, name_text
from .sections import layout_sections, section, volume_sections
from .table_state import TableState
from .timeline_section import timeline_section

_VERDICTS = {
    "critical": "Rows are hidden or in danger: ",
    "warning": "No row is in danger, but something should be done: ",
    "note": "Nothing has to be done: ",
    "": "",
}
"""What comes before the counts of the findings, by the level of the worst one."""


def page(
    state: TableState, verdict: str, findings: Sequence[HealthFindingRow], unable: Sequence[NamedCheck] = ()
) -> str:
    """The whole page: the findings with the worst one first, and the checks that could not be made."""
    seen = state.seen
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    name = name_text(seen.table.config.name or "")
    made = seen.table.clock.now().astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    worst = findings[0].level if findings else ""
    body = element(
        "body",
        element(
            "header",
            element("h1", f"The table {name}"),
            element("p", element("code", seen.table.storage.root), class_="soft"),
            element("p", _sentence(f"{_VERDICTS[worst]}{verdict}"), class_=f"verdict {worst}"),
            element("dl", *_numbers(state), class_="numbers"),
        ),
        element(
            "main",
            _findings(findings, unable),
            *layout_sections(state),
            clusterings_section(state),
            timeline_section(state),
            *volume_sections(state),
        ),
        element("footer", f"Made at {made} by hudi-services {__version__} (report --html), from the table alone."),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{name}: {verdict}"),
        _style(style),
    )
    return as_html(element("html", head, body, lang="en"))


def _style(style: str) -> Element:
    made = element("style")
    made.text = style
    return made


def _policy(style: str) -> str:
    """Nothing is loaded, nothing runs, and no other style counts."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _sentence(verdict: str) -> str:
    return f"{verdict[:1].upper()}{verdict[1:]}."


def _numbers(state: TableState) -> Iterator[Element]:
    config, files, rows = state.seen.table.config, state.files, state.rows
    found = {"table type": config.type.replace("_", " ").lower(), "table version": str(config.version.number)}
    if files is not None:
        found |= {
            "live data": size_text(files.live_bytes),
            "live files": f"{files.live_files:,}",
            "partitions": f"{len(files.partitions):,}",
        }
    if files is not None and rows is not None and rows.known and rows.known == int((files.base_bytes > 0).sum()):
        found["rows of base files"] = f"{int(rows.rows[rows.rows > 0].sum()):,}"
    found["commits on the timeline"] = f"{len(state.seen.writes):,}"
    for name, value in found.items():
        yield element("div", element("dt", name), element("dd", value))


def _findings(findings: Sequence[HealthFindingRow], unable: Sequence[NamedCheck]) -> Element:
    told = element("p", "No check of doctor has found anything.") if not findings else None
    skipped = [
        element("p", element("code", one.name), f" could not be checked: {one.detail}", class_="soft") for one in unable
    ]
    return section(
        "What is wrong" if findings or unable else "Nothing is wrong", told, *map(_finding, findings), *skipped
    )


def _finding(row: HealthFindingRow) -> Element:
    subject = f" {name_text(row.subject)}" if row.subject else ""
    numbers = ", ".join(
        f"{name.replace('_', ' ')}: {size_text(int(value)) if name.endswith('bytes') else value}"
        for name, value in json.loads(row.numbers).items()
    )
    return element(
        "div",
        element("p", row.level, element("span", f" · {row.check}{subject}"), class_="level"),
        element("p", _sentence(row.finding)),
        element("p", numbers, class_="evidence") if numbers else None,
        element("code", row.command, class_="command") if row.command else None,
        class_=f"finding {row.level}",
    )
