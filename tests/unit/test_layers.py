"""Imports go down only, and what is foreign comes in by one door."""

import ast
import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from hudi_services.schemes import SCHEMES
from hudi_services.versions import TableVersion

PACKAGE = Path(__file__).resolve().parents[2] / "hudi_services"

ROWS = [
    {"errors", "_version", "schemes"},
    {"urls", "limits"},
    {
        "model",
        "versions",
        "options",
        "packing",
        "clock",
        "plugins",
        "extras",
        "own_commands",
        "process",
        "paths",
        "units",
        "computed_once",
        "concurrency",
        "recent",
        "temporary_files",
        "request_pace",
        "waiting",
    },
    {"storage", "file_names", "stored_tables", "request_counts", "preloading"},
    {"stores", "file_cache", "small_files", "local_pieces"},
    {"codecs"},
    {"schema"},
    {"parquet", "hfile", "table_config", "locking"},
    {"calendars"},
    {"base_files"},
    {"log_files"},
    {"timeline"},
    {"table"},
    {"merging"},
    {"metadata"},
    {"snapshot", "derived_indexes"},
    {"metadata_updates", "file_records", "bucket_index"},
    {"commit", "engine"},
    {"rollback"},
    {"attempts", "rows"},
    {"rewriting"},
    {"new_tables"},
    {"keygen"},
    {"clustering", "compaction", "cleaning", "orphan_files", "validation", "indexing", "writing"},
    {"recovery", "archival", "inputs", "advising"},
    {"health"},
    {"spark", "processes"},
    {"runs"},
    {"ingest", "metrics", "html_report", "fleet"},
    {"jobs"},
    {"cli", "api"},
    {""},
    {"__main__"},
]
"""Lowest first: a module imports from rows below its own, and from its own package."""

DOORS = {
    "pyspark": ("spark/", "jobs/"),
    "py4j": ("spark/",),
    "typer": ("cli/",),
    "rich": ("cli/",),
    "obstore": ("stores/",),
    "hdfs_native": ("stores/",),
    "fastavro": ("codecs/avro.py",),
    "kazoo": ("locking/zookeeper.py",),
    "boto3": ("locking/dynamodb.py",),
    "sqlglot": ("advising/sql_clauses.py",),
    "prometheus_client": ("metrics/prometheus.py",),
    "opentelemetry": ("metrics/open_telemetry.py",),
    "vl_convert": ("html_report/drawing.py",),
    "isal": ("codecs/gzip_stream.py", "parquet/page_checks.py"),
}
SEAMS = {
    "timeline_layout": {"timeline/layout.py", "table_config.py"},
    "log_files_carry_delta_instant": {"table/log_naming.py"},
    "typed_column_stats": {"metadata/statistics/indexed_columns.py", "derived_indexes/secondary_index.py"},
    "removed_savepoint_rescans_table": {"cleaning/scope.py", "cleaning/plan.py"},
    "all_columns_are_indexed": {"metadata/statistics/indexed_columns.py"},
    "has_secondary_indexes": {"indexing/kinds.py"},
    "indexes_partitions": {"indexing/kinds.py"},
    "record_index_is_defined": {"indexing/kinds.py"},
    "mdt_rollback_is_delta_commit": {"metadata_updates/sync.py"},
    "local_timestamps": {"writing/kept_rows.py"},
    "all_commits_tell_record_size": {"writing/sizing.py"},
    "names_single_complex_key": {"keygen/key_maker.py"},
    "dates_in_delete_entries": {"ingest/write_tasks.py"},
    "bulk_insert_is_commit": {"ingest/write_execution.py"},
    "bucket_hash_splits_keys": {"writing/buckets.py", "bucket_index/ring_hashes.py"},
    "copy_on_write_names_payload": {"merging/rules.py"},
    "global_index_converts": {"ingest/fixed_types.py"},
    "record_index_converts": {"ingest/fixed_types.py"},
    "bootstrap_unescapes": {"table/bootstrap_index.py"},
    "history_keeps_floats": {"table/stored_history.py"},
}
"""Where each fact of a table version is asked for."""
VERSION_PROXY = re.compile(r"version\.(" + "|".join(SEAMS) + r")\b")
VERSION_TEST = re.compile(r"version(\.number)?\s*(==|!=|<=?|>=?|in)\s*[\d({]")

FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def module_of(file: str) -> str:
    parts = ["hudi_services", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file) for file in FILES}


def room(module: str) -> str:
    """The first name below the package, "" for the package itself, which lies above all that it offers."""
    return module.split(".")[1] if "." in module else ""


def row(module: str) -> int:
    found = [i for i, names in enumerate(ROWS) if room(module) in names]
    assert found, f"{module} has no place in the layers"
    return found[0]


@functools.cache
def imported(file: str, *, for_types: bool = True) -> Sequence[str]:
    """Full names of what `file` imports, inside functions too."""
    return tuple(_imported(file, for_types=for_types))


def _imported(file: str, *, for_types: bool) -> Iterator[str]:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    here = module_of(file).split(".")
    package = here if file.endswith("__init__.py") else here[:-1]
    skipped = set() if for_types else {id(node) for block in _type_checking(tree) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in MODULES else source


def _type_checking(tree: ast.AST) -> list[ast.If]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]


def lines_of(files: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Each line of these files, with its number."""
    for file in files:
        for number, line in enumerate((PACKAGE / file).read_text(encoding="utf-8").splitlines(), 1):
            yield file, number, line


def test_imports_go_down() -> None:
    for module, name in ((module_of(file), name) for file in FILES for name in imported(file)):
        if name.split(".")[0] == "hudi_services" and room(name) != room(module):
            assert row(name) < row(module), f"{module} imports {name}, which does not lie below it"


def test_rooms_stay_small() -> None:
    """A room that one person can know: about 4,000 lines."""
    lines: Counter[str] = Counter()
    for file in FILES:
        lines[room(module_of(file))] += (PACKAGE / file).read_text(encoding="utf-8").count("\n")
    assert lines.most_common(1)[0][1] <= 4_300, lines.most_common(3)


@pytest.mark.thorough
def test_no_loops() -> None:
    graph = {module_of(f): {n for n in imported(f, for_types=False) if n in MODULES} - {module_of(f)} for f in FILES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"modules import each other: {' > '.join((*path, module))}"
        if module not in done:
            for name in sorted(graph[module]):
                visit(name, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_doors() -> None:
    for file, name in ((one, name) for one in FILES for name in imported(one)):
        doors = DOORS.get(name.split(".")[0])
        assert doors is None or file.startswith(doors), f"{file} imports {name}: only {', '.join(doors)} may"


def test_table_versions_are_told_apart_in_one_place() -> None:
    for file, number, line in lines_of(file for file in FILES if file != "versions.py"):
        assert not VERSION_TEST.search(line), f"{file}:{number} tests a version: put the fact into versions.py"
        for asked in VERSION_PROXY.findall(line):
            assert file in SEAMS[asked], f"{file}:{number} asks {asked}: put what follows from it behind the seam"


def test_every_fact_of_a_version_has_its_seam() -> None:
    """A fact that is asked for in many places is a version test by another name."""
    assert SEAMS.keys() | {"number", "release"} == {field.name for field in dataclasses.fields(TableVersion)}
    for fact, files in SEAMS.items():
        assert len(files) <= 2, f"{fact} is asked for in {files}: put an object there that knows what follows from it"


@pytest.mark.thorough
def test_a_plan_needs_no_spark() -> None:
    """What `schedule` loads must not pull in pyspark when it is imported."""
    for file in FILES:
        if file.startswith("spark/"):
            continue
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        for node in tree.body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bad = [n for n in names if n.split(".")[0] in ("pyspark", "spark")]
            assert not bad, f"{file} imports {bad} at its top: do it inside the function that needs a session"


def test_base_files_are_opened_behind_one_seam() -> None:
    """Whoever needs rows or footers asks a SliceSource: another one is enough for slices with log files."""
    for file in FILES:
        knows_files = file.startswith(("base_files/", "log_files/"))
        opened = not knows_files and "hudi_services.base_files.file_reader" in imported(file)
        text = (PACKAGE / file).read_text(encoding="utf-8") if opened else ""
        assert not re.search(r"\b(open_base_file|read_footer)\b", text), f"{file} opens a base file by itself"


def test_storages_are_opened_by_their_urls() -> None:
    """No class of a store is named anywhere but in the table of `schemes`."""
    for file in (file for file in FILES if not file.startswith("stores/")):
        stores = {name for name in imported(file) if name.startswith("hudi_services.stores.")}
        assert stores <= {"hudi_services.stores.options"}, f"{file} imports {stores}: call open_storage"


def test_every_scheme_has_its_class() -> None:
    for scheme, row in SCHEMES.items():
        file, _, name = row.storage.removeprefix("hudi_services.").partition(":")
        text = (PACKAGE / f"{file.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\nclass {name}(" in text and scheme == scheme.lower()


SERVICES = re.compile(r"cluster|\bclean\b(?!-)|bootstrap|orphan|validat", re.IGNORECASE)


def test_the_frame_of_commits_names_no_service() -> None:
    frame = ["commit/transaction.py", "commit/drafts.py", "commit/expectations.py", "attempts/attempt.py"]
    for file, number, line in lines_of(frame):
        assert not SERVICES.search(line), f"{file}:{number} knows a service: {line.strip()}"
