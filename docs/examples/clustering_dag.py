"""Clustering from Apache Airflow 2.10: plan, then execute; what a code of hudi-services means to Airflow.

airflow dags test clustering_rides 2026-11-22 --conf '{"table": "/data/rides"}'
"""

from datetime import datetime, timedelta
from typing import Any

from airflow import DAG
from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.hooks.subprocess import SubprocessHook
from airflow.models import BaseOperator

NOTHING_TO_DO = 3  # with --fail-if-idle
FINAL = {
    2: "correct the command",
    5: "a check failed: report it, with the plan",
    6: "run hudi-services recover",
    7: "it is done, but for what the hint says: do not repeat it",
}
# All others may pass: 1 (failed), 4 (somebody else is at work), and a process that was killed.


class HudiServices(BaseOperator):
    """Runs one command, its output into the log of the task."""

    template_fields = ("command",)

    def __init__(self, *, command: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.process = SubprocessHook()

    def execute(self, context: Any) -> None:
        code = self.process.run_command(["hudi-services", *self.command, "--fail-if-idle"]).exit_code
        if code == NOTHING_TO_DO:
            raise AirflowSkipException("nothing to do")
        if code in FINAL:
            raise AirflowFailException(f"exit code {code}: {FINAL[code]}")
        if code:
            raise AirflowException(f"exit code {code}")

    def on_kill(self) -> None:
        self.process.send_sigterm()


with DAG(
    "clustering_rides",
    schedule="17 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"table": "/data/rides"},
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    plan = HudiServices(
        task_id="schedule",
        command=[
            "schedule",
            "--base-path={{ params.table }}",
            "--hoodie-conf=hoodie.clustering.plan.strategy.sort.columns=city,ts",
            "--hoodie-conf=hudi.services.clustering.plan.max.bytes=200000000000",
            # Only when something was written since; otherwise small partitions are rewritten every night.
            "--hoodie-conf=hoodie.clustering.inline.max.commits=1",
        ],
    )
    rewrite = HudiServices(
        task_id="execute",
        # Also when there is nothing to plan: an earlier run may have left its plan.
        trigger_rule="none_failed",
        command=["execute", "--base-path={{ params.table }}", "--memory-per-task=1g"],
    )
    plan >> rewrite
