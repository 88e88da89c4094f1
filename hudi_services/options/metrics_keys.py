"""The option that says where the metrics of a run go."""

from urllib.parse import urlsplit

from ..urls import scheme_of
from .option import NEVER, Phase, Section
from .value_types import url

OTLP = "otlp"
TEXT_FILE_ENDING = ".prom"
"""The collector of text files reads files of such names alone."""
_WITH_HOST = ("http", "https", "otlp+http", "otlp+https", "otlp+grpc")
_REFUSAL = (
    f"is no place for metrics: write a file FILE{TEXT_FILE_ENDING}, http://host:port of a push gateway, {OTLP}, "
    "otlp+http://host:port or otlp+grpc://host:port"
)


def _target(value: str) -> str:
    if not value or value == OTLP:
        return value
    checked, scheme = url(value), scheme_of(value)
    if scheme in ("", "file"):
        if value.endswith(TEXT_FILE_ENDING):
            return checked
    elif scheme in _WITH_HOST and _names_a_host(checked):
        return checked
    raise ValueError(_REFUSAL)


def _names_a_host(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        # A port above 65,535.
        return False


METRICS_SECTION = Section("Metrics", Phase.ANY | Phase.FLEET, NEVER)
METRICS = METRICS_SECTION(
    "hudi.services.metrics",
    "",
    f"Where the metrics of each run go: a file FILE{TEXT_FILE_ENDING}, http://host:port of a push gateway, or {OTLP}, "
    "otlp+http://host:port or otlp+grpc://host:port of a collector; when not set, nowhere.",
    parse=_target,
)
