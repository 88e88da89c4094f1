"""Writers that go on while an index is built."""

from collections.abc import Callable
from typing import Any

from hudi_services.engine import LocalEngine


class Meanwhile(LocalEngine):
    """Calls `write` with 1 and 2 before the base files are written, and before the changes since then."""

    def __init__(self, write: Callable[[int], None]) -> None:
        super().__init__(1)
        self._write, self.writes = write, 0

    def map(self, function: Any, tasks: Any, description: str, progress: Any) -> Any:
        if description in ("write the record index", "follow the table") and self.writes < 2:
            self.writes += 1
            self._write(self.writes)
        return super().map(function, tasks, description, progress)
