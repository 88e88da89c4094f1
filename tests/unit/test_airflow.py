"""The examples for Airflow, run by Airflow itself: `airflow dags test` in an environment of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..servers.tools import kept, run
from .fleets import DUE, make, rows_of

pytestmark = [pytest.mark.deep, pytest.mark.server("airflow")]
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RELEASE = "2.10.5"
_OF_ITS_TIME = (
    *("pendulum<4", "marshmallow<4", "apache-airflow-providers-common-compat<1.6"),
    *(
        "apache-airflow-providers-common-sql<1.22",
        "apache-airflow-providers-fab<2",
        "apache-airflow-providers-ftp<3.13",
    ),
    *("apache-airflow-providers-http<5.3", "apache-airflow-providers-imap<3.9", "apache-airflow-providers-smtp<2.1"),
    "apache-airflow-providers-sqlite<4.1",
)
"""What Airflow needs, not newer than the release: its own lists of versions are at no index of packages."""


@pytest.fixture(scope="module")
def airflow() -> Path:
    """The Python that has it: its folder was renamed, so that its programs do not start."""

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        what = [f"apache-airflow=={RELEASE}", *_OF_ITS_TIME]
        run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--prefer-binary", *what])

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return kept(f"airflow-{RELEASE}-{python}", install) / "bin" / "python"


def test_the_dag_of_a_fleet(airflow: Path, tmp_path: Path) -> None:
    seed = make(tmp_path / "seeds", "plain")
    lake, home = tmp_path / "lake", tmp_path / "home"
    for name in ("a", "b"):
        shutil.copytree(seed, lake / name)
    (home / "dags").mkdir(parents=True)
    shutil.copy(EXAMPLES / "fleet_dag.py", home / "dags")
    tables = tmp_path / "tables.txt"
    tables.write_text(f"{lake}/* {' '.join(f'{key}={value}' for key, value in DUE.items())}\n")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }

    def airflow_does(*words: str) -> str:
        done = subprocess.run(
            [str(airflow), "-m", "airflow", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    airflow_does("db", "migrate")
    conf = f'{{"tables": "{tables}", "results": "{tmp_path}", "bytes": "10g", "engine": "local"}}'
    told = airflow_does("dags", "test", "hudi_fleet", "2026-11-22", "--conf", conf)
    assert "a dry run, 2 tables: 2 due" in told and "2 tables: 2 done" in told
    assert told.count("Marking task as SUCCESS") == 2 and "state=success" in told
    (results,) = tmp_path.glob("fleet-20261122T000000.jsonl")
    assert results.read_text().count('"state": "done"') == 2
    assert all(rows_of(lake / name).equals(rows_of(seed)) for name in ("a", "b"))
