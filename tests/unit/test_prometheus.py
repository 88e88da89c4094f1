"""Real servers of Prometheus take what runs send, and have an answer to each query of the dashboard."""

from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest

from hudi_services.cli.app import run
from hudi_services.metrics.run_metrics import LAST_SUCCESS, OF_RUN

from ..servers.prometheus import lint, node_exporter, prometheus, push_gateway
from .rides import create
from .tables import unpack
from .test_metrics import LONG_QUERY, NEW_ROWS, queries

pytestmark = [
    pytest.mark.deep,
    pytest.mark.server("prometheus"),
    pytest.mark.usefixtures("no_conf_of_this_machine"),
]


def scraped(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def ours(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("hudi_")]


def test_a_gateway_keeps_the_last_run_of_each_kind_and_its_last_success(tmp_path: Path) -> None:
    table = unpack("1.2.0", tmp_path / "table")
    place = ["--base-path", str(table)]
    with push_gateway(tmp_path) as port:
        target = ["--metrics", f"http://127.0.0.1:{port}"]
        assert run(["schedule", *place, *target]) == 0
        assert run(["execute", "--engine", "local", *place, *target]) == 0
        assert run(["clean", *place, *target]) == 0
        before = ours(scraped(port))
        assert len([one for one in before if one.startswith(LAST_SUCCESS)]) == 3
        assert run(["execute", "--table-name", "another", *place, *target]) == 2
        text = scraped(port)
        after = ours(text)
        assert [one for one in after if one.startswith(LAST_SUCCESS)] == [
            one for one in before if one.startswith(LAST_SUCCESS)
        ]
        for action in ("schedule", "clean"):
            assert {one for one in after if f'"{action}"' in one} == {one for one in before if f'"{action}"' in one}
        # What the last run did not tell is gone, not that of the run before it.
        assert not [one for one in after if one.startswith(f"{OF_RUN}rows") and '"execute"' in one]
        assert lint(text) == ""
        assert "push_failure_time_seconds" in text
        failures = [one for one in text.splitlines() if one.startswith("push_failure_time_seconds{")]
        assert failures and all(one.endswith(" 0") for one in failures)


def test_every_query_of_the_dashboard_has_an_answer(tmp_path: Path) -> None:
    """Of two tables: one sends to a gateway, the other one to text files."""
    texts = tmp_path / "texts"
    texts.mkdir()
    table, clicks = unpack("1.2.0", tmp_path / "table"), tmp_path / "clicks"
    logs = create(clicks, table_type="MERGE_ON_READ")
    for _ in range(2):
        logs.upsert(pa.table(NEW_ROWS))
    with push_gateway(tmp_path) as gateway, node_exporter(tmp_path, texts) as node:
        to_gateway = ["--base-path", str(table), "--metrics", f"http://127.0.0.1:{gateway}"]
        for line in (["schedule"], ["execute", "--engine", "local"], ["doctor", *LONG_QUERY]):
            run([*line, *to_gateway])
        for name in ("doctor", "clean"):
            file = texts / f"clicks-{name}.prom"
            assert run([name, "--base-path", str(clicks), "--metrics", str(file)]) == 0
            assert lint(file.read_text()) == ""
        with prometheus(tmp_path, gateway, node) as server:
            server.await_scrapes()
            for text in queries():
                assert server.query(text), text
            assert [one["value"][1] for one in server.query("node_textfile_scrape_error")] == ["0"]
            both = server.query(f"count by (base_path) ({OF_RUN}state)")
            assert {one["metric"]["base_path"] for one in both} == {str(table), str(clicks)}
            old = server.query(f"time() - {LAST_SUCCESS}")
            assert len(old) == 5 and all(0 <= float(one["value"][1]) < 600 for one in old)
