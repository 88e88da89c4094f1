"""Properties that are computed when they are first asked for, once for each object.

Until Python 3.12, functools.cached_property has one lock for all objects of a class: a table whose storage hangs would
stop all other tables of the process.
"""

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """As that of functools; threads that ask one object for it wait for each other."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function = function
            self._name = function.__name__
            self._locks: dict[int, Any] = {}
            """Of the objects for which it is computed right now, by their identity."""
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            lock = self._locks.setdefault(id(instance), RLock())
            try:
                with lock:
                    if self._name not in values:
                        values[self._name] = self._function(instance)
            finally:
                self._locks.pop(id(instance), None)
            return values[self._name]


__all__ = ["cached_property"]
