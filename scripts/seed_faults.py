"""Seeds faults, one changed line at a time, and says which of them the quick suite catches: python -m scripts.seed_faults

    --tree FOLDER     another working tree (default: this one); it is copied, never changed
    --only N[,N]      these faults alone
    --contexts FILE   combined coverage of the tree by test (dynamic_context = test_function): the tests that run the
                      line in their own process stand for all unit tests: minutes instead of hours
    --interop         run the interop tests, too, on faults that no other test catches: minutes for each
    --json FILE       write the outcomes to FILE

A fault is applied to a copy of the tree. The nearest unit tests run first, then all of them, then those on Spark; the
first failure ends the fault. A fault whose line is not in the tree any more is an error: the list must follow the code.
"""

# ruff: noqa: E501

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from coverage import CoverageData

_HERE = Path(__file__).resolve().parent.parent
_NEVER_COPIED = shutil.ignore_patterns(".git", ".venv", "build", ".*_cache", ".hypothesis", "__pycache__", "demo")
_SECONDS = 2400


@dataclass(frozen=True)
class Fault:
    """`line` becomes `instead`; `near` names the unit tests to begin with (parts of file names)."""

    room: str
    what: str
    line: str
    instead: str
    near: tuple[str, ...]
    before: str = ""
    """The line as it was before commit 53de171, when it was different."""


FAULTS = (
    Fault(
        "commit",
        "log files appended to an input are overlooked",
        'return "got log files"',
        'return ""',
        ("conflicts", "liveness"),
        'return "got log files" if current.log_files else ""',
    ),
    Fault(
        "commit",
        "writes in progress do not count",
        "taken = next((group for group in sorted(updated) if group in groups), None)",
        "taken = None",
        ("conflicts", "liveness"),
        "taken = next((group for group in updated if group in groups), None)",
    ),
    Fault(
        "commit",
        "a new file of another size is taken for stored",
        "if stored is None or stored.size != stat.file_size:",
        "if stored is None:",
        ("attempt",),
        "if stored is None or stored.size != one.stat.file_size:",
    ),
    Fault(
        "commit",
        "files of tasks that outlived their driver stay",
        "for name in lister.files(partition)}",
        "for name in ()}",
        ("attempt", "crash"),
    ),
    Fault(
        "commit",
        "the lock is not looked at before an instant is drawn",
        "        self._skew = 0\n        self._table.check_held()",
        "        self._skew = 0",
        ("lock", "attempt", "lease"),
    ),
    Fault(
        "commit",
        "a lease that has ended holds",
        "return holder if _now() < until <= latest and not _is_dead(holder) else None",
        "return holder if until <= latest and not _is_dead(holder) else None",
        ("lease", "guard"),
    ),
    Fault(
        "commit",
        "checkpoints of an attempt that was rolled back count",
        "if file.mtime_millis >= began_millis]",
        "]",
        ("resume",),
    ),
    Fault(
        "commit",
        "a heartbeat may be as old as any sign",
        "(settings.heartbeat_expires_millis if heartbeat else silence)",
        "silence",
        ("liveness", "life", "recover"),
    ),
    Fault(
        "commit",
        "plans may share an instant",
        "        if instant <= latest:\n            raise ConflictError(",
        "        if instant < latest:\n            raise ConflictError(",
        ("schedule", "bad_input"),
    ),
    Fault(
        "commit",
        "a commit being rolled back does not count",
        "        if target not in written_by:\n            continue",
        "        continue",
        ("liveness", "life", "attempt", "conflicts"),
    ),
    Fault(
        "metadata",
        "sizes of files are off by one",
        "entries = {name: FileEntry(size) for name, size in sizes.items()}",
        "entries = {name: FileEntry(size + 1) for name, size in sizes.items()}",
        ("metadata_sync", "validate"),
    ),
    Fault(
        "metadata",
        "ranges of partitions are tight without all files",
        "tight=files.issubset(record.file_name for record in found)",
        "tight=True",
        ("metadata_sync", "metadata_stats"),
    ),
    Fault(
        "metadata",
        "rolled back blocks count",
        "kept = [b for b in kept if b.instant != cancelled]",
        "pass",
        ("metadata_table", "log_blocks", "mor_rollbacks"),
    ),
    Fault(
        "metadata",
        "compaction beside pending writes",
        "if any(i.ts < ts for i in metadata.data_timeline.pending()) or any(",
        "if any(",
        ("metadata_compaction",),
    ),
    Fault(
        "metadata",
        "deleted files keep their column statistics",
        "keys[COLUMN_STATS] = [column_stats_key(column, *file) for file in files for column in columns]",
        "pass",
        ("metadata_deletion", "clean"),
    ),
    Fault(
        "metadata",
        "deleted keys of the record index stay",
        "        if len(gone):\n            content = delete_block_content",
        "        if False:\n            content = delete_block_content",
        ("later_indexes",),
    ),
    Fault(
        "metadata",
        "half a delta commit of the same instant stays",
        "return metadata if repeated is None else undo(metadata, repeated, times(), times)",
        "return metadata",
        ("metadata_sync", "crash"),
    ),
    Fault(
        "metadata",
        "statistics of times are narrower than the data",
        "low, high = min(low, low * bound.unit_nanos // 1000), max(high, -(-high * bound.unit_nanos // 1000))",
        "low, high = low, high",
        ("metadata_stats", "validate_types"),
    ),
    Fault(
        "clustering",
        "a row that changed passes",
        "if group.before != after or after.rows != rows:",
        "if after.rows != rows:",
        ("row_conservation", "conversion", "checksum", "proof"),
    ),
    Fault(
        "clustering",
        "files with another name in their rows pass",
        """any(name != path.rpartition("/")[2] for""",
        """any(name is None for""",
        ("checksum", "proof", "row_conservation"),
    ),
    Fault(
        "clustering",
        "file groups of a pending clustering are planned again",
        "        if group in self.pending_clusterings:\n            return Reason.PENDING_CLUSTERING\n",
        "",
        ("selection", "schedule", "plans"),
    ),
    Fault(
        "clustering",
        "nulls sort at the wrong end",
        '"descending" if column.nulls_first else "ascending"',
        '"ascending" if column.nulls_first else "descending"',
        ("sorting",),
    ),
    Fault(
        "clustering",
        "a plan may name a file group twice",
        "    if count > 1:\n",
        "    if False:\n",
        ("input_slices", "input_files", "plans"),
    ),
    Fault(
        "clustering",
        "the schema of new files is not compared",
        "    if reader.schema != form.target:\n        raise",
        "    if False:\n        raise",
        ("rewrite", "row_conservation", "conversion"),
    ),
    Fault(
        "clean",
        "files of savepoints go",
        "return bool(rules.savepointed) and",
        "return False and",
        ("clean_rules", "clean"),
    ),
    Fault(
        "clean",
        "the last version before the horizon goes",
        "        elif one.base_instant == last_before:\n            choice.keep(one, Kept.LAST_BEFORE)\n",
        "",
        ("clean_rules", "clean"),
    ),
    Fault(
        "clean",
        "partitions are dropped beside writers",
        "    if any(i.action.writes_data and _may_write(current, i) for i in current.timeline.pending()):\n        return\n",
        "",
        ("clean",),
    ),
    Fault(
        "rollback",
        "a completed instant is deleted by a rollback that was begun",
        "    if not is_still_completed(table, plan):\n        return\n    by",
        "    return\n    by",
        ("rollback", "recover", "archived"),
    ),
    Fault(
        "rollback",
        "checkpoints survive a rollback",
        "    delete_checkpoints(table.storage, plan.ts)",
        "    pass",
        ("resume", "rollback"),
        "    forget_done(table.storage, plan.ts)",
    ),
    Fault(
        "index",
        "what left the table stays in a new index",
        'for which, some in (("new", added), ("old", gone))',
        'for which, some in (("new", added), ("old", []))',
        ("index_bootstrap", "index_builds"),
        'for which, files in (("new", added), ("old", gone))',
    ),
    Fault(
        "index",
        "locations are off by a millisecond",
        "return (moment - _EPOCH) // _MILLISECOND",
        "return (moment - _EPOCH) // _MILLISECOND + 1",
        ("record_index", "index_bootstrap", "lookup"),
    ),
    Fault(
        "index",
        "an index is published beside pending writes",
        "            if not pending and not build.is_behind(locked):",
        "            if not build.is_behind(locked):",
        ("index_builds", "index_bootstrap"),
    ),
    Fault(
        "merging",
        "cancelled blocks count",
        "order.pop(cancelled, None)",
        "order.get(cancelled)",
        ("merge_on_read_repairs",),
    ),
    Fault(
        "merging",
        "a late record replaces a delete of version 6 only if it is newer",
        "deletes_are_forgotten=True",
        "deletes_are_forgotten=False",
        ("merge_histories", "merge_on_read"),
    ),
    Fault(
        "merging",
        "a preferred base row is filled where Hudi leaves it",
        "fills_base=True,\n        marker",
        "fills_base=True,\n        fills_base_rows=True,\n        marker",
        ("merge_histories",),
    ),
    Fault(
        "merging",
        "blocks of commits that are not completed count",
        "return self.is_committed is None or instant == self.also or self.is_committed(instant)",
        "return True",
        ("merge_histories", "merge_on_read"),
    ),
    Fault(
        "compaction",
        "a log file that came after the plan is overlooked",
        "if found[one.partition].get(one.file_id) != one:",
        "if found[one.partition].get(one.file_id) is None:",
        ("compaction",),
    ),
    Fault(
        "compaction",
        "a writer that began before the plan is overlooked",
        'if chance is Prospect.MAY_COMMIT:\n                raise ConflictError(\n                    f"{what} began before',
        'if False:\n                raise ConflictError(\n                    f"{what} began before',
        ("compaction",),
    ),
)


@dataclass
class Outcome:
    """`caught_by` is the first test that failed, "" when none did; `tier` is the group of tests that it belongs to."""

    number: int
    room: str
    what: str
    tier: str
    caught_by: str
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=_HERE)
    parser.add_argument("--only", default="")
    parser.add_argument("--contexts", type=Path)
    parser.add_argument("--interop", action="store_true")
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    numbers = [int(n) for n in wanted.only.split(",") if n] or list(range(1, len(FAULTS) + 1))
    found = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(wanted.tree, copy, ignore=_NEVER_COPIED)
        for number in numbers:
            one = outcome(number, FAULTS[number - 1], copy, contexts=wanted.contexts, interop=wanted.interop)
            found.append(one)
            print(
                f"{number:3} {one.room:10} {one.tier:8} {one.seconds:5.0f} s  {one.what}: {one.caught_by}", flush=True
            )
    caught = sum(bool(one.caught_by) for one in found)
    print(f"{caught} of {len(found)} faults were caught")
    if wanted.json:
        wanted.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


def outcome(number: int, fault: Fault, tree: Path, *, contexts: Path | None, interop: bool) -> Outcome:
    """The outcome of one fault in the copy `tree`, which is restored afterwards."""
    path, text, line = _place(fault, tree)
    start = time.monotonic()
    path.write_text(text.replace(line, fault.instead, 1))
    try:
        near = sorted(p for p in (tree / "tests/unit").glob("test_*.py") if any(n in p.name for n in fault.near))
        tiers = [
            ("nearest", [str(p) for p in near]),
            ("unit", _unit_tests(contexts, path.relative_to(tree).as_posix(), text, line)),
            ("spark", ["tests/spark"]),
        ]
        for tier, tests in [*tiers, *([("interop", ["tests/interop"])] if interop else [])]:
            failed = _first_failure(tree, tests, parallel=tier == "unit") if tests else ""
            if failed:
                return Outcome(number, fault.room, fault.what, tier, failed, time.monotonic() - start)
        return Outcome(number, fault.room, fault.what, "", "", time.monotonic() - start)
    finally:
        path.write_text(text)


def _place(fault: Fault, tree: Path) -> tuple[Path, str, str]:
    for line in filter(None, (fault.line, fault.before)):
        holders = [p for p in sorted((tree / "hudi_services").rglob("*.py")) if line in p.read_text()]
        if len(holders) == 1:
            return holders[0], holders[0].read_text(), line
    sys.exit(f"the line of the fault '{fault.what}' is not in {tree}, or is there more than once")


def _unit_tests(contexts: Path | None, module: str, text: str, line: str) -> list[str]:
    """The unit tests that run the line; all where that is not known."""
    if contexts is None:
        return ["tests/unit"]
    first = text[: text.index(line)].count("\n") + 1
    data = CoverageData(str(contexts))
    data.read()
    found = set()
    for file in (one for one in data.measured_files() if one.endswith(f"/{module}")):
        by_line = data.contexts_by_lineno(file)
        found |= {one for n in range(first, first + line.count("\n") + 1) for one in by_line.get(n, []) if one}
    names = (one.rpartition(".") for one in found)
    return sorted(f"{place.replace('.', '/')}.py::{test}" for place, _, test in names) or ["tests/unit"]


def _first_failure(tree: Path, tests: list[str], *, parallel: bool) -> str:
    workers = ["-n", "2"] if parallel else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *workers, *tests]
    with tempfile.TemporaryDirectory(prefix="faults-tmp-") as base:
        done = subprocess.run(
            [*command, f"--basetemp={base}/t"],
            cwd=tree,
            # The launcher finds spark-submit on the path: the copy has no .venv.
            env={**os.environ, "PYTHONPATH": str(tree), "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"},
            # A shell that starts this in the background has SIGINT ignored, and one test sends it.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode == 0:
        return ""
    lines = [one for one in done.stdout.splitlines() if one.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else f"exit {done.returncode}"


if __name__ == "__main__":
    main()
