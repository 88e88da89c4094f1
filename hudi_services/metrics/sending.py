"""Sends the metrics of a run that has ended. Nothing that happens here changes what the run has done."""

from threading import Thread
from typing import Protocol

from ..errors import ConfigError
from ..extras import check_installed
from ..options import Options
from ..options.metrics_keys import METRICS, OTLP
from ..runs.report import Report, sentence
from ..urls import absolute_path, is_writable_file, local_path
from . import open_telemetry, prometheus

_LONGEST = 10.0
"""Seconds after which a run goes on without an answer: the timeouts of libraries do not bound a look-up of a name, or a
server that gives a byte now and then."""


class Exporter(Protocol):
    """Sends the metrics of a report to one place."""

    def send(self, report: Report) -> None:
        """Raises an exception that says what went wrong."""


def exporter_of(options: Options) -> Exporter | None:
    """The exporter to the target that the options name; None for none.

    Call this before any work. Raises ConfigError for a file that cannot be written, and where a package is missing.
    """
    target = options[METRICS]
    if not target:
        return None
    said = f"{METRICS.key}={target} (from {options.source(METRICS)})"
    path = None if target == OTLP else local_path(target)
    if path is None and target.startswith(OTLP):
        check_installed(open_telemetry.MODULES, open_telemetry.EXTRA, said)
        return open_telemetry.collector(target)
    check_installed(prometheus.MODULES, prometheus.EXTRA, said)
    if path is None:
        return prometheus.PushGateway(target)
    if not is_writable_file(path):
        raise ConfigError(f"{said} cannot be written", hint="give a file in a folder that exists")
    return prometheus.TextFile(absolute_path(path))


def send(report: Report, exporter: Exporter | None) -> None:
    """Send the metrics of a run that has ended. What goes wrong is a warning in the report."""
    if exporter is None:
        return
    wrong: list[str] = []

    def work() -> None:
        try:
            exporter.send(report)
        # Libraries raise what they like, and the work of the run is done.
        except Exception as error:
            wrong.append(sentence(error))

    sender = Thread(target=work, name="send metrics", daemon=True)
    sender.start()
    sender.join(_LONGEST)
    if sender.is_alive():
        wrong.append(f"no answer within {_LONGEST:.0f} s")
    report.warn(f"the metrics of the run were not sent to {exporter}: {why}" for why in wrong[:1])
