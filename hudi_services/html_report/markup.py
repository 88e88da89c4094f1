"""HTML by elements, not by text: whatever a name of a table has in it, it cannot become an element or an attribute."""

from collections.abc import Iterable
from typing import TypeAlias
from xml.etree import ElementTree

from ..urls import message_without_secrets

Element: TypeAlias = ElementTree.Element
Child: TypeAlias = "str | Element | None"

_LONGEST_NAME = 120


def element(tag: str, *children: Child, **attributes: str) -> Element:
    """An element with these children in their order; `None` is left out, and `_` in names of attributes becomes `-`.

    Texts are names of a table, too; attributes must not be.
    """
    made = ElementTree.Element(tag, {name.strip("_").replace("_", "-"): value for name, value in attributes.items()})
    for child in children:
        append(made, child)
    return made


def append(parent: Element, child: Child) -> None:
    """Put a text or an element after the others."""
    if child is None:
        return
    if not isinstance(child, str):
        parent.append(child)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + visible(child)
    else:
        parent.text = (parent.text or "") + visible(child)


def visible(text: str) -> str:
    """The text with a mark in the place of each character that is not seen: controls, and those that turn the
    direction of text. Secrets in URLs are left out."""
    shown = message_without_secrets(text)
    return "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in shown)


def name_text(name: str) -> str:
    """A name of a table, cut where it is long."""
    shown = visible(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 1]}…"


def table(head: Iterable[str], rows: Iterable[Iterable[Child]], caption: str) -> Element:
    """A table with a heading for each column."""
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *(element("th", one, scope="col") for one in head))),
            element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows)),
        ),
        class_="table",
    )


def as_html(root: Element) -> str:
    """The text of a whole page."""
    return f"<!doctype html>\n{ElementTree.tostring(root, encoding='unicode', method='html')}\n"
