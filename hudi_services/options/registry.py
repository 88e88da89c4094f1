"""Every key that is known here, built once from its declarations: options by sections, and the keys that are none."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

from . import (
    archive_keys,
    clean_keys,
    clustering_keys,
    commit_keys,
    compaction_keys,
    creation_keys,
    file_keys,
    fleet_keys,
    idle_keys,
    index_keys,
    lock_keys,
    metrics_keys,
    not_honoured,
    writing_keys,
)
from .option import Key, Option

K = TypeVar("K", bound=Key)

SECTIONS = (
    clustering_keys.GROUPS,
    clustering_keys.ORDER,
    file_keys.FILES,
    compaction_keys.METADATA_TABLE,
    compaction_keys.COMPACTION,
    clean_keys.CLEANING,
    archive_keys.ARCHIVAL,
    commit_keys.EXTRA_METADATA,
    commit_keys.OTHER_WRITERS,
    commit_keys.ROLLBACK,
    index_keys.RECORD_INDEX,
    lock_keys.LOCK,
    creation_keys.CREATION,
    writing_keys.WRITING,
    fleet_keys.FLEET,
    metrics_keys.METRICS_SECTION,
)
"""In the order of docs/configuration.md."""
OPTIONS: tuple[Option[Any], ...] = tuple(chain.from_iterable(section.options for section in SECTIONS))


class Registry:
    """Declarations by all names of their keys. Raises ValueError for a name that is declared twice."""

    def __init__(self, declared: Iterable[Key]) -> None:
        self.by_name: dict[str, Key] = {}
        for one in declared:
            for name in one.names:
                if name in self.by_name:
                    raise ValueError(f"{name} is declared twice")
                self.by_name[name] = one
        self.whole = sorted(name for name in self.by_name if not name.endswith("."))
        """Without the beginnings of keys."""
        self._prefixes = tuple(self.by_name.keys() - self.whole)

    def all_of(self, kind: type[K]) -> tuple[K, ...]:
        """The keys with this effect."""
        return tuple(dict.fromkeys(one for one in self.by_name.values() if isinstance(one, kind)))

    def is_known(self, key: str) -> bool:
        """Whether a key is one of Hudi's or ours: any other one may be misspelt."""
        return key in self.by_name or key.startswith(self._prefixes)


KNOWN = Registry([*OPTIONS, *creation_keys.TIME_PROPERTIES, *not_honoured.ALL, *idle_keys.ALL])
