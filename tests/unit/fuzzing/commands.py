"""Every command of the program as the fuzz runs it: in this process, with an engine of its own instead of Spark."""

import io
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_services.cli.app import run
from hudi_services.engine import LocalEngine
from hudi_services.jobs import clustering, index_bootstrap
from hudi_services.metadata.records.keys import RECORD_INDEX
from hudi_services.runs.report import Report
from hudi_services.timeline.instant import Action

from ..tables import open_local

_QUIET = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.write.lock.wait_time_ms": "300",
}
_RETENTION = ("--hoodie-conf", "hoodie.clean.commits.retained=1", "--hoodie-conf", "hoodie.clean.trigger.max.commits=0")
_SORT = ("--hoodie-conf", "hoodie.clustering.plan.strategy.sort.columns=ts")


@dataclass(frozen=True)
class Command:
    """`name` is for people; `words` follow the program's name, but for the table."""

    name: str
    words: tuple[str, ...]
    is_dry: bool = False
    changes_view: bool = False
    """Whether readers see other files after it than before, by its very purpose."""

    @property
    def takes_back(self) -> str:
        """The completed instant that it is to take back, "" for none."""
        return self.words[self.words.index("--instant") + 1] if self.changes_view and "--instant" in self.words else ""


@dataclass(frozen=True)
class Outcome:
    code: int | None
    """None when an exception came out of the program."""
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        try:
            found = json.loads(self.out)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def use_local_engine() -> None:
    """For the rest of this process: tasks run here."""

    def with_engine(job: Callable[..., Report]) -> Callable[..., Report]:
        return lambda wanted, storage=None, engine=None: job(wanted, storage, engine or LocalEngine())

    for module, name in ((clustering, "execute"), (index_bootstrap, "index_bootstrap")):
        setattr(module, name, with_engine(getattr(module, name)))


def commands(table: Path, keys_file: Path) -> Mapping[str, Command]:
    """Those that make sense on this table, by name."""
    opened = open_local(table)
    all_of_them = [
        Command("schedule --dry-run", ("schedule", "--dry-run"), is_dry=True),
        Command("schedule", ("schedule", *_SORT)),
        Command("execute", ("execute",)),
        Command("clean --dry-run", ("clean", "--dry-run", *_RETENTION), is_dry=True),
        Command("clean", ("clean", *_RETENTION)),
        Command("orphan-files", ("orphan-files", "--min-age", "0"), is_dry=True),
        Command("orphan-files --apply", ("orphan-files", "--apply", "--min-age", "0")),
        Command("orphan-files --delete", ("orphan-files", "--apply", "--delete-older-than", "0")),
        Command("recover", ("recover",), is_dry=True),
        Command("recover --apply", ("recover", "--apply", "--abandoned-after", "0")),
        Command("validate", ("validate",), is_dry=True),
        Command("validate --apply", ("validate", "--apply")),
    ]
    if RECORD_INDEX in opened.config.metadata_partitions:
        all_of_them.append(Command("index-lookup", ("index-lookup", "--keys-file", str(keys_file)), is_dry=True))
    else:
        groups = ("--file-group-count", "2")
        all_of_them.append(Command("index-bootstrap", ("index-bootstrap", *groups)))
        all_of_them.append(Command("index-bootstrap --resume", ("index-bootstrap", "--resume", *groups)))
    quarantines = table / ".hoodie/.hudi_services/quarantine"
    for one in sorted(quarantines.iterdir()) if quarantines.exists() else ():
        words = ("orphan-files", "--apply", "--restore", one.name)
        all_of_them.append(Command("orphan-files --restore", words, changes_view=True))
    writes = opened.timeline.completed_writes()
    if writes:
        last = ("rollback", "--instant", writes[-1].ts, "--completed")
        all_of_them.append(Command("rollback --dry-run", (*last, "--dry-run"), is_dry=True))
        all_of_them.append(Command("rollback", last, changes_view=True))
    pending = opened.timeline.pending()
    if pending:
        all_of_them.append(Command("rollback of a pending one", ("rollback", "--instant", pending[-1].ts)))
    done = [one for one in opened.timeline.completed({Action.REPLACE_COMMIT}) if opened.timeline.is_clustering(one)]
    if done:
        all_of_them.append(Command("undo --dry-run", ("undo", "--instant", done[-1].ts, "--dry-run"), is_dry=True))
        all_of_them.append(Command("undo", ("undo", "--instant", done[-1].ts), changes_view=True))
    return {one.name: one for one in all_of_them}


def run_command(command: Command, table: Path) -> Outcome:
    """Run it to its end; what it wrote on stdout and stderr, of all its threads."""
    out, err = io.StringIO(), io.StringIO()
    quiet = [word for key, value in _QUIET.items() for word in ("--hoodie-conf", f"{key}={value}")]
    first, *rest = command.words
    code: int | None = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run([first, "--base-path", str(table), "--format", "json", *rest, *quiet])
        except BaseException as error:  # whatever it is: nothing may come out
            print(f"Traceback: {error!r}", file=sys.stderr)
    return Outcome(code, out.getvalue(), err.getvalue())
