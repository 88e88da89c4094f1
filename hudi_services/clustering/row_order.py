"""The place from which operators' own layouts import `RowOrder`; it is defined in `rows.ordering`."""

from ..rows.ordering import RowOrder

__all__ = ["RowOrder"]
