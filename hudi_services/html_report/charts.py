"""The pictures of the page as Vega-Lite specifications, and what each shows in words. All texts of tables in them are
data, never a field name or an expression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..health.commit_facts import CommitFacts
from ..health.distributions import Histogram, Spread
from ..health.range_facts import RangeFacts
from ..health.timeline_spans import InstantSpan
from ..timeline.instant import Action
from ..units import counted, size_text
from .axes import Spec, Unit, linear_axis, log_axis, time_axis
from .markup import name_text, visible

WIDE, HALF, NARROW = 1060, 470, 500
"""Widths of plots in pixels, without their axes."""
_LONGEST_LABEL = 22
_SERVICES = ("CLUSTER", "COMPACT", "LOG_COMPACT")
_LANES = [action.value for action in Action]


@dataclass(frozen=True, slots=True)
class Line:
    """A line across a picture, at a place that a reader should know."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes of one kind."""

    kind: str
    bytes: int
    label: str
    color: str = field(default="var(--blue)")


def histogram_chart(bins: Histogram, unit: Unit, title: str, what: str, lines: Sequence[Line] = ()) -> Spec:
    """How many of `what` there are by size."""
    bars: list[Spec] = [
        {"from": low, "to": high, "count": count, "told": f"{count:,} {what} of {unit.text(low)} to {unit.text(high)}"}
        for low, high, count in zip(bins.edges, bins.edges[1:], bins.counts, strict=False)
        if count
    ]
    ends = [bins.edges[0], bins.edges[-1], *(line.at for line in lines)]
    middle = (min(ends) * max(ends)) ** 0.5
    x = log_axis([*ends, max(ends) * 1.02], unit, title)
    y = linear_axis(max(bins.counts) * (1.35 if lines else 1.05), Unit.ROWS, what)
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "bar", "stroke": "var(--ground)", "strokeWidth": 1},
            "encoding": {
                "x": {"field": "from", **x},
                "x2": {"field": "to"},
                "y": {"field": "count", **y},
                "y2": {"datum": 0},
                "description": {"field": "told"},
            },
        }
    ]
    layers += _lines(x, lines, middle, top=10, step=15)
    return {"width": HALF, "height": 190, "layer": layers}


def spread_chart(groups: Sequence[tuple[str, int, Spread]], unit: Unit, title: str) -> Spec:
    """The five numbers of each group: its name, how many values it has, and what they are."""
    labels = _labels([name for name, _, _ in groups])
    rows: list[Spec] = [
        {
            "label": label,
            "least": max(one.least, 1),
            "lower": max(one.lower, 1),
            "middle": max(one.middle, 1),
            "upper": max(one.upper, 1),
            "most": max(one.most, 1),
            "told": f"{name_text(name)}, {counted(count, 'file')}: {unit.text(one.least)} to {unit.text(one.most)}, "
            f"the median {unit.text(one.middle)}",
        }
        for label, (name, count, one) in zip(labels, groups, strict=True)
    ]
    x = log_axis([bound for row in rows for bound in (row["least"] / 1.3, row["most"])], unit, title)
    y: Spec = {
        "field": "label",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "domain": False, "ticks": False, "labelLimit": 150},
    }
    told = {"field": "told"}
    return {
        "width": HALF - 100,
        "height": {"step": 19},
        "data": {"values": rows},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "rule", "stroke": "var(--gray)", "strokeWidth": 1.5},
                "encoding": {"x": {"field": "least", **x}, "x2": {"field": "most"}},
            },
            {
                "mark": {"type": "bar", "height": 9},
                "encoding": {"x": {"field": "lower", **x}, "x2": {"field": "upper"}, "description": told},
            },
            {
                "mark": {"type": "tick", "size": 15, "thickness": 2.5, "color": "var(--ink)"},
                "encoding": {"x": {"field": "middle", **x}, "description": told},
            },
        ],
    }


def depth_chart(facts: RangeFacts) -> Spec:
    """In how many files a value of the sort column is, along the values."""
    names = {"before the clustering": facts.before, "now": facts.now}
    series: list[Spec] = [
        {"place": 100 * step / (len(one.curve) - 1), "files": files, "when": when}
        for when, one in names.items()
        if one is not None
        for step, files in enumerate(one.curve)
    ]
    color = _colors("when", {"before the clustering": "var(--orange)", "now": "var(--blue)"}, series)
    x: Spec = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [0, 100], "nice": False},
        "axis": {
            "title": f"values of {name_text(facts.column)} in their order, from the least to the greatest",
            "values": [0, 25, 50, 75, 100],
            "labelExpr": "datum.value + ' %'",
            "grid": False,
        },
    }
    most = max(row["files"] for row in series)
    y = {"field": "files", **linear_axis(most, Unit.ROWS, "files of a partition")}
    return {
        "width": HALF + 260,
        "height": 210,
        "data": {"values": series},
        "mark": {"type": "line", "strokeWidth": 2.5, "interpolate": "step"},
        "encoding": {"x": x, "y": y, "color": color},
    }


def timeline_chart(spans: Sequence[InstantSpan], now: float, lines: Sequence[Line], width: int) -> Spec:
    """Instants by action: a mark where each was requested, a bar until it was completed, or until now."""
    rows: list[Spec] = [
        {
            "action": span.action,
            "begin": span.begin,
            "end": max(span.begin, now if span.end is None else span.end),
            "state": "pending" if span.end is None else "completed",
            "told": f"{span.action} {span.ts}: {_lasted(span, now)}",
        }
        for span in spans
    ]
    times = [time for row in rows for time in (row["begin"], row["end"])] + [line.at for line in lines]
    x = time_axis(min(times), max(times))
    lanes = [one for one in _LANES if any(span.action == one for span in spans)]
    y: Spec = {
        "field": "action",
        "type": "nominal",
        "sort": lanes,
        "axis": {
            "title": None,
            "domain": False,
            "ticks": False,
            "grid": True,
            "labelFontSize": 12,
            "tickBand": "extent",
        },
    }
    color = _colors("state", {"completed": "var(--blue)", "pending": "var(--orange)"}, rows, orient="bottom")
    layers: list[Spec] = [
        {
            "data": {"values": [row for row in rows if (row["state"] == "completed") == is_completed]},
            "mark": {"type": "bar", "height": 12 if is_completed else 5, "opacity": 0.55 if is_completed else 1},
            "encoding": {"x": {"field": "begin", **x}, "x2": {"field": "end"}, "description": {"field": "told"}},
        }
        for is_completed in (False, True)
    ]
    layers.append(
        {
            "data": {"values": rows},
            "mark": {"type": "tick", "size": 18, "thickness": 2},
            "encoding": {"x": {"field": "begin", **x}, "description": {"field": "told"}},
        }
    )
    for layer in layers:
        layer["encoding"] |= {"y": y, "color": color}
    begin, end = x["scale"]["domain"]
    layers += _lines(x, lines, (begin + end) / 2, top=-8, step=-16)
    return {"width": width, "height": {"step": 30}, "layer": layers}


def durations_chart(spans: Sequence[InstantSpan]) -> Spec:
    """How long the instants of each action took: a dot for each."""
    rows: list[Spec] = [
        {
            "action": span.action,
            "seconds": max((span.end - span.begin) / 1000, 0.01),
            "told": f"{span.action} {span.ts}: {_lasted(span, 0)}",
        }
        for span in spans
        if span.end is not None and span.action != Action.SAVEPOINT.value
    ]
    seconds = [row["seconds"] * room for row in rows for room in (0.7, 1.4)]
    x = log_axis(seconds, Unit.SECONDS, "from request to completion")
    lanes = [one for one in _LANES if any(row["action"] == one for row in rows)]
    return {
        "width": HALF,
        "height": {"step": 30},
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "seconds", **x},
            "y": {
                "field": "action",
                "type": "nominal",
                "sort": lanes,
                "axis": {"title": None, "domain": False, "ticks": False, "labelFontSize": 12},
            },
            "description": {"field": "told"},
        },
        "mark": {"type": "circle", "size": 70, "opacity": 0.55, "color": "var(--blue)"},
    }


def amounts_chart(amounts: Sequence[Amount]) -> Spec:
    """Bytes by kind, each with its number."""
    rows: list[Spec] = [
        {"kind": one.kind, "bytes": one.bytes, "told": one.label, "color": one.color} for one in amounts
    ]
    most = max(one.bytes for one in amounts)
    x = linear_axis(most, Unit.BYTES, "")
    x["axis"] = None
    x["scale"] = {"domain": [0, max(most, 1) * 1.45], "nice": False}
    y = {
        "field": "kind",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "domain": False, "ticks": False, "labelFontSize": 12, "labelColor": "var(--ink)"},
    }
    return {
        "width": HALF,
        "height": {"step": 30},
        "data": {"values": rows},
        "encoding": {"x": {"field": "bytes", **x}, "y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": 18},
                "encoding": {"color": {"field": "color", "type": "nominal", "scale": None}},
            },
            {"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": {"text": {"field": "told"}}},
        ],
    }


def live_chart(commits: CommitFacts, times: Sequence[float], width: int) -> Spec:
    """The bytes that readers saw after each commit."""
    rows: list[Spec] = [
        {"at": at, "bytes": live, "told": f"after {instant.ts}: {size_text(live)}"}
        for at, instant, live in zip(times, commits.instants, commits.live_bytes.tolist(), strict=True)
    ]
    x = time_axis(min(times), max(times))
    y = linear_axis(max(row["bytes"] for row in rows), Unit.BYTES, "live bytes")
    line = {"x": {"field": "at", **x}, "y": {"field": "bytes", **y}}
    return {
        "width": width,
        "height": 190,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "area", "interpolate": "step-after", "color": "var(--blue)", "fillOpacity": 0.18},
                "encoding": line,
            },
            {
                "mark": {"type": "line", "interpolate": "step-after", "color": "var(--blue)", "strokeWidth": 2},
                "encoding": line,
            },
            {
                "mark": {"type": "circle", "color": "var(--blue)", "size": 30, "opacity": 1},
                "encoding": {**line, "description": {"field": "told"}},
            },
        ],
    }


def written_chart(commits: CommitFacts, values: Sequence[int], unit: Unit, title: str) -> Spec:
    """What each commit has written, of rows or bytes, the oldest on the left."""
    rows: list[Spec] = [
        {
            "number": number,
            "written": value,
            "by": "table service" if operation in _SERVICES else "writer",
            "told": f"{instant.ts} {name_text(operation)}: {unit.text(value)}",
        }
        for number, (instant, operation, value) in enumerate(
            zip(commits.instants, commits.operations, values, strict=True)
        )
    ]
    color = _colors("by", {"writer": "var(--blue)", "table service": "var(--teal)"}, rows)
    return {
        "width": HALF,
        "height": 190,
        "data": {"values": rows},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {
                "field": "number",
                "type": "ordinal",
                "axis": {"title": "commits, the oldest first", "labels": False, "ticks": False},
            },
            "y": {"field": "written", **linear_axis(max(values), unit, title)},
            "color": color,
            "description": {"field": "told"},
        },
    }


def _colors(field: str, colors: Mapping[str, str], rows: Sequence[Spec], orient: str = "top") -> Spec:
    """A colour for each value of a field, and a legend of those that some row has."""
    domain = [one for one in colors if any(row[field] == one for row in rows)]
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": domain, "range": [colors[one] for one in domain]},
        "legend": {"title": None, "orient": orient},
    }


def _lines(x: Spec, lines: Sequence[Line], middle: float, top: int, step: int) -> list[Spec]:
    """The lines, then their labels, `step` from each other; left of its line where that is right of the middle of the
    picture. A label is above the begin of every line that it could cross, and has a rim in the colour of the ground."""
    rules: list[Spec] = []
    labels: list[Spec] = []
    heights = sorted(top + step * number for number in range(len(lines)))
    outermost_first = sorted(lines, key=lambda line: -line.at if line.at > middle else line.at)
    for height, line in zip(heights, outermost_first, strict=True):
        flip = line.at > middle
        at = {"x": {"datum": line.at, **x}}
        ink = {"color": "var(--red)", "align": "right" if flip else "left", "dx": -5 if flip else 5}
        rim = {**ink, "stroke": "var(--ground)", "strokeWidth": 4}
        rules.append(
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "stroke": "var(--red)", "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {**at, "y": {"value": height - 6}, "y2": {"value": "height"}},
            }
        )
        labels += (
            {
                "data": {"values": [{}]},
                "mark": {"type": "text", **look},
                "encoding": {**at, "y": {"value": height}, "text": {"value": line.label}},
            }
            for look in (rim, ink)
        )
    return [*rules, *labels]


def _labels(partitions: Sequence[str]) -> list[str]:
    """The ends of their paths, which tell more than the beginnings do; each differs from the others."""
    labels: dict[str, None] = {}
    for number, name in enumerate(partitions, 1):
        shown = visible(name) or "the table"
        label = shown if len(shown) <= _LONGEST_LABEL else f"…{shown[1 - _LONGEST_LABEL :]}"
        labels[label if label not in labels else f"{label} ({number})"] = None
    return list(labels)


def _lasted(span: InstantSpan, now: float) -> str:
    if span.end is None:
        return f"pending for {Unit.SECONDS.text((now - span.begin) / 1000)}"
    return f"completed after {Unit.SECONDS.text((span.end - span.begin) / 1000)}"
