"""The options of a run over many tables: which services, and how much of what they may use."""

from .option import NEVER, Option, Phase, Section
from .value_types import bytes_of, integer, names, seconds

SERVICES_OF_TABLES = ("recover", "validate", "orphan-files", "clean", "archive", "compact", "execute")
"""The services that a fleet may run, by their commands, in the order in which one table gets them."""


_USUAL: tuple[str, ...] = ("clean", "archive", "compact", "execute")


def _services(value: str) -> tuple[str, ...]:
    found = names(value)
    if not found:
        raise ValueError("names no service")
    for one in found:
        if one not in SERVICES_OF_TABLES:
            raise ValueError(f"names {one!r}, which is none of {', '.join(SERVICES_OF_TABLES)}")
    return tuple(one for one in SERVICES_OF_TABLES if one in found)


def _size(value: str) -> int:
    found = bytes_of(value)
    if found is None or found < 1:
        raise ValueError("is no size, as 512m, 50g or 2t")
    return found


FLEET = Section("Fleets of tables", Phase.FLEET, NEVER)
SERVICES = FLEET(
    "hudi.services.fleet.services",
    _USUAL,
    "The services that `fleet --apply` runs where they are due, a comma list: recover, validate and orphan-files (each "
    "as with --apply), clean, archive, compact, execute.",
    parse=_services,
)
AT_ONCE = FLEET(
    "hudi.services.fleet.tables.at.once",
    4,
    "How many tables `fleet` works on at the same time.",
    parse=integer(1, 256),
)
MOST_BYTES: Option[int | None] = FLEET(
    "hudi.services.fleet.max.bytes",
    None,
    "Bytes of files that the clusterings and compactions of one run of `fleet` read, for example 50g; they write about "
    "as many. When not set, no limit.",
    parse=_size,
)
REQUESTS_PER_SECOND: Option[int | None] = FLEET(
    "hudi.services.fleet.requests.per.second",
    None,
    "How many requests a second `fleet` makes of stores, with all its tasks; when not set, no limit.",
    parse=integer(1, 1_000_000),
)
TABLE_TIME: Option[int | None] = FLEET(
    "hudi.services.fleet.table.time",
    None,
    "How long one table may keep others waiting, for example 30m: then `fleet` begins the next table beside it. When "
    "not set, 15m.",
    parse=seconds,
)
