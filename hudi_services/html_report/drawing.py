"""Vega-Lite specifications to SVG elements, by vl-convert: no browser, no request, and no script in what comes out.

Colours are CSS variables of the page (`page.css`), so that one picture serves on a light and a dark ground, and on
paper. What comes from vl-convert is copied element by element, and only what is listed here: a picture has shapes and
texts, nothing that acts. The description of a mark becomes its `title`, which browsers show under the pointer.
"""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from ..extras import imported
from .markup import Element, element

_SVG = "{http://www.w3.org/2000/svg}"
_TAGS = frozenset({"svg", "g", "path", "line", "rect", "circle", "text", "tspan"})
_ATTRIBUTES = frozenset({
    *("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewBox", "transform"),
    *("fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"),
    *("stroke-linecap", "text-anchor", "font-size", "font-weight"),
})  # fmt: skip
_GUIDES = ("axis", "legend", "title", "group")
_CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": "Arial, Liberation Sans, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "gridColor": "var(--grid)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 190,
        "labelPadding": 6,
    },
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--soft)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "orient": "top",
        "symbolSize": 90,
        "titleFontWeight": "normal",
    },
    "text": {"color": "var(--ink)", "fontSize": 11},
    "bar": {"color": "var(--blue)"},
}


def check_library() -> None:
    """Raise ConfigError, before any work, where vl-convert is missing."""
    imported("vl_convert", "report", "report --html")


def drawn(spec: Mapping[str, Any], says: str) -> Element:
    """The picture of a specification; `says` is what it shows, for those who do not see it."""
    import vl_convert

    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **spec, "config": _CONFIG}
    # No URL is allowed: all data is in the specification.
    text = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    picture = _copied(ElementTree.fromstring(text))
    assert picture is not None, "vl-convert gives an svg element"
    picture.set("role", "img")
    picture.insert(0, element("title", says))
    return picture


def _copied(source: Element) -> Element | None:
    """What is known of an element, and of those in it; None for one that is not known, or draws nothing."""
    tag = source.tag.removeprefix(_SVG)
    if tag not in _TAGS or source.get("display") == "none" or source.get("class") == "background":
        return None
    made = ElementTree.Element(tag, {name: value for name, value in source.items() if name in _ATTRIBUTES})
    made.text = source.text
    inside = [child for child in map(_copied, source) if child is not None]
    if tag == "g" and not inside:
        return None
    told, role = source.get("aria-label"), source.get("aria-roledescription", "")
    if told and role and not role.startswith(_GUIDES):
        made.append(element("title", told))
    made.extend(inside)
    return made
