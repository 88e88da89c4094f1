"""Many tables from Apache Airflow 2.10: look, then run what is due, within a budget.

airflow dags test hudi_fleet 2026-11-22 --conf '{"tables": "/etc/hudi/tables.txt", "results": "/var/log/hudi"}'
"""

from datetime import datetime, timedelta
from typing import Any

from airflow import DAG
from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.hooks.subprocess import SubprocessHook
from airflow.models import BaseOperator

NOTHING_TO_DO = 3  # with --fail-if-idle
FINAL = {2: "correct the list, or the options in it", 5: "rows are hidden or in danger: see the log"}
# All others may pass: 1 (failed), 4 (another run is at work), 7 (some tables failed: a retry takes only those).


class Fleet(BaseOperator):
    """Runs hudi-services fleet, its output into the log of the task."""

    template_fields = ("command",)

    def __init__(self, *, command: list[str], looks: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.looks = looks
        self.process = SubprocessHook()

    def execute(self, context: Any) -> None:
        code = self.process.run_command(["hudi-services", "fleet", *self.command, "--fail-if-idle"]).exit_code
        if code == NOTHING_TO_DO:
            raise AirflowSkipException("nothing is due")
        if self.looks and code in (5, 7):
            return  # what it found is in the log, and the run does what it can
        if code in FINAL:
            raise AirflowFailException(f"exit code {code}: {FINAL[code]}")
        if code:
            raise AirflowException(f"exit code {code}")

    def on_kill(self) -> None:
        self.process.send_sigterm()


with DAG(
    "hudi_fleet",
    schedule="0 1 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"tables": "/etc/hudi/tables.txt", "results": "/var/log/hudi", "bytes": "500g", "engine": "spark"},
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    look = Fleet(task_id="look", command=["{{ params.tables }}"], looks=True)
    run = Fleet(
        task_id="run",
        command=[
            "{{ params.tables }}",
            "--apply",
            "--max-bytes={{ params.bytes }}",
            "--time-limit=2h",
            "--engine={{ params.engine }}",
            # One file for each run of the DAG: a retry of the task goes on where the last one ended.
            "--results={{ params.results }}/fleet-{{ ts_nodash }}.jsonl",
            "--resume",
        ],
    )
    look >> run
