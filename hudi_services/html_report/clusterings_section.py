"""The section of the page about earlier clusterings: their files, and what a lookup opens before and after each."""

from collections.abc import Iterator, Sequence
from datetime import timezone

from ..clock import parse_instant
from ..health.clustering_gains import ClusteringGain, FileSizes
from ..units import size_text
from .axes import Spec, Unit, linear_axis
from .charts import HALF
from .markup import Child, Element, element, name_text, table
from .sections import figure, section, sorry
from .table_state import TableState

_MOST_COLUMNS = 4
_HEAD = ("clustering, completed", "layout", "files", "bytes", "median file", "a lookup of one value opens")


def clusterings_section(state: TableState) -> Element:
    """The list, and the picture of those that were measured."""
    title, gains = "Earlier clusterings", state.clusterings
    if gains is None:
        return section(title, sorry(f"The clusterings could not be read: {state.unable['clusterings']}"))
    if not gains:
        return section(title, sorry("The timeline has no completed clustering. The archive is not read."))
    caption = (
        "The newest completed clusterings of the timeline, the newest first, with the files that each replaced → those "
        "that it wrote. What was rolled back or undone is not among them."
    )
    zone = state.seen.table.timeline.zone
    listed = table(_HEAD, (list(_cells(gain, zone)) for gain in gains), caption)
    measured = [gain for gain in gains if gain.lookup is not None]
    return section(title, listed, element("div", _picture(measured), class_="charts") if measured else None)


def _cells(gain: ClusteringGain, zone: str) -> Iterator[Child]:
    moment = parse_instant(gain.instant.completion_time or gain.instant.ts, zone)
    completed = "" if moment is None else f" {moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
    yield element("span", element("code", gain.instant.ts), completed)
    yield _layout(gain)
    yield _sides([None if side is None else f"{side.files:,}" for side in (gain.old, gain.new)])
    yield _sides([_bytes(gain.old), _bytes(gain.new)])
    yield _sides([None if side is None else size_text(side.median) for side in (gain.old, gain.new)])
    yield _opened(gain)


def _layout(gain: ClusteringGain) -> str:
    if gain.old is None:
        return "?"
    if not gain.columns:
        return "not sorted"
    names = ", ".join(map(name_text, gain.columns[:_MOST_COLUMNS]))
    more = len(gain.columns) - _MOST_COLUMNS
    return f"{name_text(gain.layout)} by {names}" + (f" and {more} more" if more > 0 else "")


def _sides(texts: Sequence[str | None]) -> str:
    return " → ".join("?" if text is None else text for text in texts)


def _bytes(sizes: FileSizes | None) -> str | None:
    if sizes is None:
        return None
    return f"about {size_text(sizes.bytes)} (by its plan)" if sizes.is_planned else size_text(sizes.bytes)


def _opened(gain: ClusteringGain) -> str:
    lookup = gain.lookup
    if lookup is None:
        return f"Not known: {gain.why}."
    before, after = lookup.before, lookup.after
    sentence = (
        f"{before.files:,.1f} → {after.files:,.1f} files of a partition, {size_text(round(before.bytes))} → "
        f"{size_text(round(after.bytes))}, in {name_text(gain.columns[0])}."
    )
    if gain.is_sample and gain.old is not None and gain.new is not None:
        some = f", in {lookup.partitions:,} of {gain.partitions:,} partitions"
        sentence += (
            f" A sample: the ranges of {lookup.ranges:,} of {gain.old.files + gain.new.files:,} files"
            f"{some if lookup.partitions < gain.partitions else ''}."
        )
    return sentence


def _picture(gains: Sequence[ClusteringGain]) -> Element:
    caption = (
        "Look for a short blue bar under a long orange one: since that clustering, a lookup skips most files. It asks "
        "for one value of the first sort column, and opens the files of a partition whose ranges hold the value: on "
        "average over the lower bounds of the ranges. Only files that the clustering has replaced or written count."
    )
    return figure("What a lookup opens before and after", caption, (gains_chart(gains), ""), whole=True)


def gains_chart(gains: Sequence[ClusteringGain]) -> Spec:
    """How many files a lookup opens before and after each clustering, by its instant."""
    rows: list[Spec] = []
    for gain in gains:
        if gain.lookup is not None:
            for when, side in (("before", gain.lookup.before), ("after", gain.lookup.after)):
                noun = "file" if round(side.files, 1) == 1 else "files"
                label = f"{when} {side.files:,.1f} {noun}, {size_text(round(side.bytes))}"
                says = f"{gain.instant.ts} by {name_text(gain.columns[0])}: {label}"
                rows.append(
                    {"instant": gain.instant.ts, "when": when, "files": side.files, "label": label, "told": says}
                )
    most = max(row["files"] for row in rows)
    x = linear_axis(most, Unit.ROWS, "")
    # Each bar has its number.
    x["axis"] = None
    x["scale"] = {"domain": [0, max(most, 1) * 1.35], "nice": False}
    y = {
        "field": "instant",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "domain": False, "ticks": False, "labelFontSize": 12},
    }
    times = ["before", "after"]
    color = {
        "field": "when",
        "type": "nominal",
        "scale": {"domain": times, "range": ["var(--orange)", "var(--blue)"]},
        "legend": {"title": None},
    }
    return {
        "width": HALF + 100,
        "height": {"step": 52, "for": "position"},
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "files", **x},
            "y": y,
            "yOffset": {"field": "when", "type": "nominal", "sort": times},
        },
        "layer": [
            {"mark": {"type": "bar", "height": 16}, "encoding": {"color": color, "description": {"field": "told"}}},
            {"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": {"text": {"field": "label"}}},
        ],
    }
