"""The metrics of runs: what they say is what the JSON report says, and sending them changes nothing else."""

import base64
import json
import logging
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import promql_parser
import pyarrow as pa
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

import hudi_services
from hudi_services.cli.app import run
from hudi_services.errors import ConfigError, ConflictError
from hudi_services.metrics import open_telemetry, sending
from hudi_services.metrics.prometheus import PushGateway, TextFile
from hudi_services.metrics.run_metrics import LAST_SUCCESS, OF_RUN, OF_TABLE, metrics_of
from hudi_services.runs.report import CheckResult, InOut, NamedCheck, Report, RunState, TableFacts
from hudi_services.runs.report_rows import DroppedGroupRow

from ..servers.process import free_port
from ..servers.receiver import Receiver, receiver
from .rides import create
from .tables import digest, unpack

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "docs/examples/grafana-dashboard.json"
Labels = tuple[tuple[str, str], ...]
Values = dict[tuple[str, Labels], float]
NEW_ROWS = {"id": ["a", "b"], "day": ["d", "d"], "ts": [0, 0]}

LONG_QUERY = ("--longest-query", "525600")
"""With it, `doctor` has a critical finding of its check short_retention."""

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def key(name: str, labels: dict[str, str]) -> tuple[str, Labels]:
    return name, tuple(sorted(labels.items()))


def parsed(text: str) -> Values:
    """The values of a text by name and labels, read by the parser of the library."""
    families = list(text_string_to_metric_families(text))
    assert len({one.name for one in families}) == len(families)
    assert all(one.type == "gauge" and one.documentation.endswith(".") for one in families)
    return {key(one.name, one.labels): one.value for family in families for one in family.samples}


def expected(document: dict[str, Any]) -> Values:
    """What the JSON report of a run says, without what `doctor` says of the table, and without times of day."""
    of_run = {
        "table": document["table"]["name"] or "",
        "base_path": document["table"]["base_path"],
        "service": document["service"],
        "action": document["action"],
        "dry_run": str(document["dry_run"]).lower(),
    }
    found: Values = {}

    def add(name: str, value: float | None, **labels: str) -> None:
        if value is not None:
            found[key(f"hudi_services_{name}", {**of_run, **labels})] = pytest.approx(float(value), abs=0.001)

    for state in ("requested", "completed", "idle", "partly_done", "failed"):
        add("state", document["state"] == state, state=state)
    for name in ("exit_code", "groups", "tasks", "resumed_groups", "peak_bytes"):
        add(name, document[name])
    for name in ("files", "bytes", "rows"):
        for direction in ("in", "out"):
            add(name, document[name][direction], direction=direction)
    for name in ("left_out", "decoded"):
        for reason, number in document[name].items():
            add(name, number, reason=reason)
    results = [one["result"] for one in document["checks"]]
    for result in set(results):
        add("checks", results.count(result), result=result)
    for place, kinds in document["requests"].items():
        for kind, number in kinds.items():
            add("requests", number, place=place, kind=kind)
    for phase, seconds in document["seconds"].items():
        if phase == "total":
            add("duration_seconds", seconds)
        else:
            add("seconds", seconds, phase=phase)
    add("conflicts", document["exit_code"] == 4)
    add("dropped_groups", len(document["tables"].get("dropped_groups", ())))
    for name, rows in (("tables", "tables"), ("fleet_services", "services")):
        if document["service"] == "fleet":
            for state, number in Counter(row["state"] for row in document["tables"][rows]).items():
                add(name, number, state=state)
    add("warnings", len(document["warnings"]))
    return found


def without_times(values: Values) -> Values:
    return {one: value for one, value in values.items() if not one[0].endswith("_timestamp_seconds")}


def of_runs(values: Values) -> Values:
    return {one: value for one, value in values.items() if one[0].startswith(OF_RUN)}


def value(values: Values, name: str, **labels: str) -> float:
    (found,) = [
        number for (named, given), number in values.items() if named == name and labels.items() <= dict(given).items()
    ]
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, dict[str, Any], Values]]:
    """Runs of real tables by name: the exit code, the JSON report, and the text file."""
    folder = tmp_path_factory.mktemp("runs")
    table = unpack("1.2.0", folder / "table")
    logs = folder / "logs"
    clicks = create(logs, table_type="MERGE_ON_READ")
    for _ in range(2):
        clicks.upsert(pa.table(NEW_ROWS))
    tables = folder / "tables.json"
    tables.write_text(f"{logs}\n{folder}/nowhere\n")
    lines = {
        "doctor": ["doctor", *LONG_QUERY],
        "doctor of logs": ["doctor", "--base-path", str(logs)],
        "plan": ["schedule", "--dry-run"],
        "schedule": ["schedule"],
        "execute": ["execute", "--engine", "local"],
        "clean": ["clean"],
        "failed": ["execute", "--instant-time", "20200101000000000"],
        "nowhere": ["clean", "--base-path", str(folder / "nowhere")],
        "fleet": ["fleet", str(tables), "--hoodie-conf", "hoodie.compact.inline.max.delta.commits=1"],
    }
    found = {}
    for name, line in lines.items():
        text, report = folder / f"{name}.prom", folder / f"{name}.json"
        place = [] if "--base-path" in line or line[0] == "fleet" else ["--base-path", str(table)]
        code = run([*line, *place, "--metrics", str(text), "--report", str(report)])
        found[name] = code, json.loads(report.read_text()), parsed(text.read_text())
    assert not [one.name for one in folder.iterdir() if one.is_file() and one.suffix not in (".prom", ".json")]
    return found


Runs = dict[str, tuple[int, dict[str, Any], Values]]


@pytest.mark.thorough
def test_the_file_says_what_the_report_says(runs: Runs) -> None:
    """Every number of the report, and no other one."""
    assert {name: code for name, (code, *_) in runs.items()} == {
        "doctor": 5, "doctor of logs": 0, "plan": 0, "schedule": 0, "execute": 0, "clean": 0, "failed": 2, "nowhere": 2,
        "fleet": 7,
    }  # fmt: skip
    for name, (_, document, values) in runs.items():
        told = without_times(of_runs(values))
        assert told == expected(document), name
        succeeded = [one for one in values if one[0] == LAST_SUCCESS]
        assert bool(succeeded) == (document["exit_code"] not in (1, 2, 4, 7)), name
        assert abs(value(values, f"{OF_RUN}run_timestamp_seconds") - time.time()) < 600
        assert any(one[0].startswith(OF_TABLE) for one in values) == name.startswith("doctor")
    document, values = runs["execute"][1:]
    assert document["rows"]["in"] > 0 and value(values, f"{OF_RUN}rows", direction="in") == document["rows"]["in"]


def test_a_conflict_and_dropped_groups_are_told() -> None:
    report = Report("clustering", "execute", TableFacts("/t", "t"))
    report.show(DroppedGroupRow, [DroppedGroupRow(1, "p", 2, "changed")] * 3)
    report.seconds["total"] = 1.0
    report.failed(ConflictError("another writer has changed every group"))
    told = {one.name: one.value for one in metrics_of(report)}
    assert (told[f"{OF_RUN}conflicts"], told[f"{OF_RUN}dropped_groups"]) == (1, 3)
    assert LAST_SUCCESS not in told
    report.partly_done("3 groups were left out")
    told = {one.name: one.value for one in metrics_of(report)}
    assert told[f"{OF_RUN}conflicts"] == 0 and LAST_SUCCESS not in told


def test_the_last_success_outlives_a_failure(tmp_path: Path) -> None:
    """Of this kind of run: what is of another one, or no text of metrics at all, gives none."""
    table, file = unpack("1.2.0", tmp_path / "table"), tmp_path / "clean.prom"
    flags = ["--base-path", str(table), "--metrics", str(file)]
    file.write_text("no metrics {\n")
    assert run(["clean", *flags]) == 0
    success = {one: number for one, number in parsed(file.read_text()).items() if one[0] == LAST_SUCCESS}
    assert len(success) == 1
    (table / ".hoodie/hoodie.properties").rename(table / "away")
    assert run(["clean", *flags]) == 1
    after = parsed(file.read_text())
    assert {one: number for one, number in after.items() if one[0] == LAST_SUCCESS} == success
    assert value(after, f"{OF_RUN}exit_code") == 1
    assert run(["clean", "--dry-run", *flags]) == 1
    assert not [one for one in parsed(file.read_text()) if one[0] == LAST_SUCCESS]


def unescaped(path: str) -> dict[str, str]:
    """The grouping key of a request to a gateway, by the rules of its page."""
    parts = path.removeprefix("/metrics/").split("/")
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name.endswith("@base64"):
            text = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().replace("\0", "")
        found[name.removesuffix("@base64")] = text
    return found


@pytest.fixture
def gateway() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def test_a_push_replaces_what_the_last_run_of_its_kind_has_pushed(tmp_path: Path, gateway: Receiver) -> None:
    """But for the last success, which is in a group of its own."""
    table = unpack("1.2.0", tmp_path / "table")
    flags = ["--base-path", str(table), "--metrics", gateway.url]
    report = tmp_path / "report.json"
    assert run(["clean", *flags, "--report", str(report)]) == 0
    assert [one.method for one in gateway.sent] == ["PUT", "PUT"]
    run_key, success_key = (unescaped(one.path) for one in gateway.sent)
    assert run_key == {
        "job": "hudi-services", "instance": str(table), "service": "clean", "action": "clean", "dry_run": "false",
    }  # fmt: skip
    assert success_key == {**run_key, "of": "last_success"}
    told, success = (parsed(one.body.decode()) for one in gateway.sent)
    document = json.loads(report.read_text())
    assert without_times(told) == expected(document)
    assert [name for name, _ in success] == [LAST_SUCCESS]
    gateway.sent.clear()
    assert run(["clean", *flags, "--table-name", "another"]) == 2
    assert [unescaped(one.path) for one in gateway.sent] == [run_key]
    gateway.sent.clear()
    assert run(["clean", "--dry-run", *flags]) == 0
    assert {unescaped(one.path)["dry_run"] for one in gateway.sent} == {"true"}


def test_the_password_of_a_gateway_is_of_the_environment(
    gateway: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUDI_SERVICES_PUSH_USER", "me")
    monkeypatch.setenv("HUDI_SERVICES_PUSH_PASSWORD", "hidden")
    gateway.status = 401
    table = unpack("1.2.0", tmp_path / "table")
    assert run(["clean", "--base-path", str(table), "--metrics", gateway.url, "--format", "json"]) == 0
    assert gateway.sent[0].headers["Authorization"] == f"Basic {base64.b64encode(b'me:hidden').decode()}"
    out, err = capsys.readouterr()
    assert "hidden" not in out + err and "401" in err


@pytest.mark.parametrize("way", ["http", "otlp+http", "otlp+grpc"])
@pytest.mark.parametrize("fault", ["closed", "refuses", "silent"])
def test_a_gateway_that_is_down_changes_nothing(
    way: str,
    fault: str,
    tmp_path: Path,
    gateway: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One warning, soon; the exit code, stdout and the table are those of a run without metrics."""
    monkeypatch.setattr(sending, "_LONGEST", 1.5)
    table = unpack("1.2.0", tmp_path / "table")
    before = digest(table)
    if fault == "silent":
        gateway.answers.clear()
    gateway.status = 503 if way != "otlp+http" else 400
    port = free_port() if fault == "closed" else gateway.port
    target = f"{way}://127.0.0.1:{port}"
    began = time.monotonic()
    code = run(["clean", "--base-path", str(table), "--metrics", target, "--format", "json"])
    assert time.monotonic() - began < 8 and code == 0
    out, err = capfd.readouterr()
    document = json.loads(out)
    (warning,) = document["warnings"]
    shown = target.removeprefix("otlp+").removeprefix("grpc://")
    assert re.fullmatch(f"the metrics of the run were not sent to {re.escape(shown)}: .+", warning)
    assert err == f"warning: {warning}\n"
    assert (document["state"], document["exit_code"], digest(table)) == ("idle", 0, before)


def test_a_run_does_not_wait_for_what_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a server that gives a byte now and then, which no timeout of a library ends."""
    monkeypatch.setattr(sending, "_LONGEST", 0.1)
    end = threading.Event()

    class Stuck:
        def __str__(self) -> str:
            return "there"

        def send(self, report: Report) -> None:
            end.wait(20)

    report, began = full(), time.monotonic()
    sending.send(report, Stuck())
    assert time.monotonic() - began < 10 and not end.is_set()
    end.set()
    assert report.warnings == ["the metrics of the run were not sent to there: no answer within 0 s"]


def test_threads_that_send_at_the_same_time_leave_the_logger_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets what the library said in it, in whatever order they end."""
    logger = logging.getLogger("opentelemetry")
    # A thread of another test may still wait for its server.
    monkeypatch.setattr(open_telemetry, "_senders", open_telemetry._Senders())
    monkeypatch.setattr(logger, "propagate", True)
    before = [*logger.handlers]
    first, second = threading.Barrier(2, timeout=20), threading.Barrier(2, timeout=20)
    said: dict[str, list[str]] = {}

    def early() -> None:
        with open_telemetry._said_by_the_library() as told:
            first.wait()
            logger.getChild("exporter").error("early")
            said["early"] = told
        second.wait()

    def late() -> None:
        first.wait()
        with open_telemetry._said_by_the_library() as told:
            logger.getChild("exporter").error("late")
            said["late"] = told
            second.wait()

    threads = [threading.Thread(target=one) for one in (early, late)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert said == {"early": ["early"], "late": ["late"]} and logger.propagate and logger.handlers == before


@pytest.mark.parametrize("text", ['a{x="y", ="w"} 1\n', "\x00{", f"{LAST_SUCCESS} x\n"])
def test_a_file_of_somebody_else_is_replaced(text: str, tmp_path: Path) -> None:
    """Whatever the parser of the library makes of it."""
    file = tmp_path / "x.prom"
    file.write_text(text)
    report = Report("clean", "clean", TableFacts("/t", "t"))
    sending.send(report, TextFile(str(file)))
    assert not report.warnings and parsed(file.read_text())


def test_a_file_that_cannot_be_written_any_more_changes_nothing(tmp_path: Path) -> None:
    report = Report("clean", "clean", TableFacts("/t", "t")).completed(None)
    sending.send(report, TextFile(str(tmp_path / "gone" / "x.prom")))
    (warning,) = report.warnings
    assert "No such file" in warning and report.exit_code == 0


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("ftp://host/x.prom", "is no place for metrics"),
        ("metrics.txt", "is no place for metrics"),
        ("http://", "is no place for metrics"),
        ("http://host:99999", "is no place for metrics"),
        ("otlp+udp://host:1", "is no place for metrics"),
        ("FOLDER/none/x.prom", "cannot be written"),
        ("FOLDER/folder.prom", "cannot be written"),
        ("https://me:hidden@host:9091", "holds a user name or password"),
        ("otlp+http://me:hidden@host:4318", "holds a user name or password"),
        ("http://host:9091?token=hidden", "holds a query"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_any_work(
    target: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = unpack("1.2.0", tmp_path / "table")
    before = digest(table)
    (tmp_path / "folder.prom").mkdir()
    given = target.replace("FOLDER", str(tmp_path))
    assert run(["schedule", "--base-path", str(table), "--metrics", given]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: hudi.services.metrics=") and "(from --metrics)" in err and why in err
    assert "hidden" not in err and not out and digest(table) == before
    with pytest.raises(ConfigError, match=why):
        hudi_services.open(table, metrics=given).clean()


@pytest.mark.parametrize(
    ("target", "module", "extra"),
    [
        ("x.prom", "prometheus_client", "metrics"),
        ("http://host:9091", "prometheus_client", "metrics"),
        ("otlp", "opentelemetry.sdk", "opentelemetry"),
    ],
)
def test_without_its_extra_it_is_refused(
    target: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    assert run(["clean", "--base-path", str(tmp_path), "--metrics", target]) == 2
    assert f"pip install 'hudi-services[{extra}]'" in capsys.readouterr().err
    if module == "prometheus_client":
        assert run(["doctor", "--base-path", str(tmp_path), "--format", "prometheus"]) == 2
        assert "--format prometheus needs" in capsys.readouterr().err


def test_python_sends_them_too(tmp_path: Path) -> None:
    """By `open`, or by the options of a call, which count more; a failure, too."""
    table, file, other = unpack("1.2.0", tmp_path / "table"), tmp_path / "all.prom", tmp_path / "clean.prom"
    opened = hudi_services.open(table, metrics=str(file), engine="local")
    opened.doctor(longest_query_minutes=525_600)
    assert value(parsed(file.read_text()), f"{OF_RUN}exit_code", service="doctor") == 5
    opened.clean(options={"hudi.services.metrics": str(other)})
    assert value(parsed(other.read_text()), f"{OF_RUN}exit_code", service="clean") == 0
    with pytest.raises(ConfigError):
        opened.execute_clustering("20200101000000000")
    assert value(parsed(file.read_text()), f"{OF_RUN}exit_code", service="clustering") == 2


def otlp_values(message: Any) -> Values:
    found: Values = {}
    for resource in message.resource_metrics:
        named = {one.key: one.value.string_value for one in resource.resource.attributes}
        assert named["service.name"] == "hudi-services" and named["team"] == "lake"
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                unit = "s" if metric.name.endswith("seconds") else "By" if metric.name.endswith("_bytes") else ""
                assert metric.unit == unit and metric.description
                for point in metric.gauge.data_points:
                    labels = {one.key: one.value.string_value for one in point.attributes}
                    number = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
                    found[key(metric.name, labels)] = number
    return found


class Collector:
    """A collector of OpenTelemetry over gRPC, which keeps what it is sent."""

    def __init__(self) -> None:
        self.metrics: list[Any] = []
        self.traces: list[Any] = []
        kept = self

        class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
            def Export(self, request: Any, context: Any) -> Any:
                kept.metrics.append(request)
                return metrics_service_pb2.ExportMetricsServiceResponse()

        class Traces(trace_service_pb2_grpc.TraceServiceServicer):
            def Export(self, request: Any, context: Any) -> Any:
                kept.traces.append(request)
                return trace_service_pb2.ExportTraceServiceResponse()

        self.server = grpc.server(ThreadPoolExecutor(2))
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), self.server)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()


def sent_by_otlp(way: str, gateway: Receiver, lines: list[list[str]]) -> tuple[list[Any], list[Any]]:
    """What the runs have sent: metrics, and traces."""
    if way == "grpc":
        collector = Collector()
        try:
            for line in lines:
                run([*line, "--metrics", f"otlp+grpc://127.0.0.1:{collector.port}"])
        finally:
            collector.server.stop(None).wait()
        return collector.metrics, collector.traces
    for line in lines:
        run([*line, "--metrics", "otlp" if way == "environment" else f"otlp+{gateway.url}"])
    assert {one.path for one in gateway.sent} == {"/v1/metrics", "/v1/traces"}
    metrics = [one.body for one in gateway.sent if one.path.endswith("metrics")]
    traces = [one.body for one in gateway.sent if one.path.endswith("traces")]
    return (
        [metrics_service_pb2.ExportMetricsServiceRequest.FromString(one) for one in metrics],
        [trace_service_pb2.ExportTraceServiceRequest.FromString(one) for one in traces],
    )


@pytest.mark.threads
@pytest.mark.parametrize("way", ["http", "grpc", "environment"])
def test_open_telemetry_gets_metrics_and_a_trace(
    way: str, tmp_path: Path, gateway: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metrics of the text file under the same names; a span of the run, with one below it for each phase."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=lake")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gateway.url if way == "environment" else "http://127.0.0.1:9")
    table, report = unpack("1.2.0", tmp_path / "table"), tmp_path / "report.json"
    good = ["doctor", *LONG_QUERY, "--base-path", str(table), "--report", str(report)]
    bad = ["clean", "--base-path", str(table), "--table-name", "another"]
    metrics, traces = sent_by_otlp(way, gateway, [good, bad])
    assert len(metrics) == len(traces) == 2
    document = json.loads(report.read_text())
    told = otlp_values(metrics[0])
    assert without_times(of_runs(told)) == expected(document)
    assert value(told, f"{OF_TABLE}findings", check="short_retention", level="critical") == 1
    assert not [one for one in otlp_values(metrics[1]) if one[0] == LAST_SUCCESS]
    spans, failed = ([span for r in one.resource_spans for s in r.scope_spans for span in s.spans] for one in traces)
    (parent,) = (one for one in spans if not one.parent_span_id)
    assert parent.name == "doctor doctor" and parent.status.code == 0
    children = [one for one in spans if one is not parent]
    assert {one.name for one in children} == document["seconds"].keys() - {"total"}
    assert {one.parent_span_id for one in children} == {parent.span_id}
    for one in children:
        took = (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9
        assert took == pytest.approx(document["seconds"][one.name], abs=0.001)
        assert parent.start_time_unix_nano <= one.start_time_unix_nano
        assert one.end_time_unix_nano <= parent.end_time_unix_nano
    assert failed[-1].status.code == 2 and "another" in failed[-1].status.message


def queries() -> list[str]:
    """All PromQL of the dashboard, its variables replaced as Grafana does, and that of the page."""
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    for one in document["templating"]["list"]:
        if one["type"] == "query":
            found.append(re.fullmatch(r"label_values\((\w+), \w+\)", one["definition"])[1])  # type: ignore[index]
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    alerts = re.findall(r"(?m)^(time\(\) .+) > ", page)
    assert alerts
    return [one.replace("$base_path", ".*") for one in [*found, *alerts]]


def named_in(expression: Any) -> Iterator[tuple[str, set[str]]]:
    """Each metric that a parsed query selects, with the labels that the query names."""
    selectors: list[Any] = []
    labels: set[str] = set()
    _collect(expression, selectors, labels)
    for one in selectors:
        yield one.name, labels | {matcher.name for matcher in one.matchers.matchers}


def _collect(node: Any, selectors: list[Any], labels: set[str]) -> None:
    kind = type(node).__name__
    if kind == "VectorSelector":
        selectors.append(node)
    elif kind == "AggregateExpr":
        labels.update(node.modifier.labels if node.modifier else ())
        _collect(node.expr, selectors, labels)
    elif kind == "BinaryExpr":
        _collect(node.lhs, selectors, labels)
        _collect(node.rhs, selectors, labels)
    elif kind == "Call":
        for one in node.args:
            _collect(one, selectors, labels)
    elif kind in ("ParenExpr", "UnaryExpr"):
        _collect(node.expr, selectors, labels)
    else:
        assert kind in ("NumberLiteral", "StringLiteral"), f"teach this test {kind}"


def full() -> Report:
    """A report in which everything is known."""
    amount = InOut(1, 2)
    report = Report(
        "clustering", "execute", TableFacts("/t", "t"), groups=1, tasks=1, resumed_groups=1, files=amount, bytes=amount,
        rows=amount, left_out={"large": 1}, decoded={"sorted": 1}, checks=[NamedCheck("c", CheckResult.PASSED)],
        seconds={"rewrite": 1.0, "total": 1.0}, requests={"driver": {"get": 1}}, peak_bytes=1,
    )  # fmt: skip
    return report.completed("20260101000000000")


def emitted(runs: Runs) -> dict[str, set[str]]:
    """The names of labels by metric, of real runs and of the full report."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, labels in (one for *_, values in runs.values() for one in values):
        found[name] |= dict(labels).keys()
    for metric in metrics_of(full()):
        assert found.setdefault(metric.name, {*metric.labels}) == metric.labels.keys(), metric.name
    return found


def test_the_dashboard_asks_for_metrics_and_labels_that_exist(runs: Runs) -> None:
    known = {
        name: labels
        for name, labels in emitted(runs).items()
        if any(name == n for *_, v in runs.values() for n, _ in v)
    }
    asked = [one for text in queries() for one in named_in(promql_parser.parse(text))]
    assert len(asked) > 20
    for name, labels in asked:
        assert labels <= known[name], (name, labels - known[name])


def test_each_target_of_the_dashboard_has_the_data_source_of_its_variable() -> None:
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    variables = {one["name"]: one["type"] for one in document["templating"]["list"]}
    assert variables == {"datasource": "datasource", "base_path": "query"}
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = [one for one in document["panels"] if one["type"] != "row"]
    assert all(one["datasource"] == source and one["description"] and one["targets"] for one in panels)
    assert all(target["datasource"] == source for one in panels for target in one["targets"])
    assert len({one["id"] for one in document["panels"]}) == len(document["panels"])
    places = {(x, y) for one in document["panels"] for x in cells(one, "x", "w") for y in cells(one, "y", "h")}
    assert len(places) == sum(one["gridPos"]["w"] * one["gridPos"]["h"] for one in document["panels"]), "they overlap"
    assert max(x for x, _ in places) == 23


def cells(panel: dict[str, Any], begin: str, size: str) -> range:
    return range(panel["gridPos"][begin], panel["gridPos"][begin] + panel["gridPos"][size])


def test_the_page_lists_every_metric_with_its_labels(runs: Runs) -> None:
    """And none that does not exist; those of the table are on the page of doctor."""
    of_run = {"table", "base_path", "service", "action", "dry_run"}
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    listed = {
        name: {*re.findall(r"`(\w+)`", labels)}
        for name, labels in re.findall(r"(?m)^\| `(hudi_\w+)` \|([^|]*)\|", page)
    }
    known = emitted(runs)
    assert listed == {name: labels - of_run for name, labels in known.items() if name.startswith(OF_RUN)}
    assert {*re.findall(r"`(\w+)`", page.partition("Each has the labels")[2].partition(".")[0])} == of_run
    doctor = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"(?m)^\| `(hudi_table_\w+)` \|", doctor))
    of_table = {name for name in known if name.startswith(OF_TABLE)}
    checks = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "hudi_services/health").glob("*.py"))
    # Some are of tables of other kinds: with a record index, or with many files.
    assert rows == of_table | {one for one in rows if f'"{one.removeprefix(OF_TABLE)}"' in checks}
    assert not [name for name in known if name.endswith(("_total", "_minutes", "_millis", "_kib"))], "base units"


def test_every_state_is_told_apart() -> None:
    """A state that a later version adds is told, too."""
    for state in RunState:
        report = full()
        report.state = state
        told = {one.labels["state"]: one.value for one in metrics_of(report) if one.name == f"{OF_RUN}state"}
        assert told == {one.value: one is state for one in RunState}


def test_a_gateway_may_have_a_path(gateway: Receiver) -> None:
    PushGateway(f"{gateway.url}/push/").send(full())
    assert all(one.path.startswith("/push/metrics/job/hudi-services/") for one in gateway.sent)
