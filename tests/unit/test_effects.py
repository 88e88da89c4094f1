"""Each key that Hudi knows has one effect: it is honoured, refused, told by a warning, or of no consequence."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.engine import LocalEngine
from hudi_services.errors import ConfigError, HudiServicesError
from hudi_services.jobs import (
    archive,
    clean,
    clustering,
    compaction,
    orphan_files,
    recover,
    rollback,
    undo,
    validate,
    writing,
)
from hudi_services.jobs.advise import advise
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.index_lookup import index_lookup
from hudi_services.options import Option, effects, registry, resolve, value_types
from hudi_services.options.creation_keys import TIME_PREFIXES
from hudi_services.options.option import NEVER, Idle, IndexSwitch, KeptProperty, Key, NotHonoured, Phase, Section
from hudi_services.options.registry import KNOWN, OPTIONS, Registry
from hudi_services.runs.report import Report
from hudi_services.runs.request import (
    AdviseRequest,
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    IndexRequest,
    LookupRequest,
    Mode,
    OrphanFilesRequest,
    RecoverRequest,
    Request,
    RollbackRequest,
    UndoRequest,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)

from .hudi_keys import OF_OTHER_BUNDLES, hudi_keys
from .rides import FILTERS, create
from .test_layers import PACKAGE

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

NOT_HONOURED = {one.key: one for one in KNOWN.all_of(NotHonoured)}
MAKE_INDEXES = [one.key for one in KNOWN.all_of(IndexSwitch) if one.makes]
DELETE_INDEXES = [one.key for one in KNOWN.all_of(IndexSwitch) if not one.makes]
DELETE_STATISTICS = {one.key for one in OPTIONS if one.keeps}
KEPT = tuple(one.key for one in KNOWN.all_of(KeptProperty))
IDLE = [one.key for one in KNOWN.all_of(Idle)]
MODULES = [one for one in vars(registry).values() if getattr(one, "__name__", "").endswith("_keys")]
ONE_VALUE = {
    *("CLEAN_TRIGGER_STRATEGY", "OVERWRITE_MODE", "BUCKET_EXPRESSIONS"),
    *("COMBINE_BEFORE_UPSERT", "COMBINE_BEFORE_DELETE", "ALLOW_DUPLICATES"),
}
"""Options with the one value that is supported: to resolve them refuses all others."""
QUICK = {**FILTERS, "hoodie.time.generator.max_expected_clock_skew_ms": "0"}


def test_each_key_of_hudi_has_one_effect() -> None:
    honoured = [name for option in OPTIONS for name in option.names]
    effects_of = Counter([*honoured, *NOT_HONOURED, *MAKE_INDEXES, *DELETE_INDEXES, *KEPT, *IDLE])
    assert [key for key, count in effects_of.items() if count > 1] == []
    by_name, prefixes = set(KNOWN.whole), tuple(effects_of.keys() - KNOWN.whole)
    assert [key for key in sorted(hudi_keys()) if key not in by_name and not key.startswith(prefixes)] == []
    # A key that no release has would be a slip of ours; those of AWS have a bundle of their own.
    named = {key for key in by_name if key.lstrip("_").startswith("hoodie.")}
    assert {key for key in named - hudi_keys() if not key.startswith(OF_OTHER_BUNDLES)} == set()
    assert KNOWN.by_name.keys() == effects_of.keys() and DELETE_STATISTICS
    assert KEPT == TIME_PREFIXES and all(prefix.endswith(".") for prefix in prefixes)
    assert all(one.refused or one.warned for one in NOT_HONOURED.values())


def test_a_key_without_an_effect_cannot_be_declared() -> None:
    section = Section("a section", Phase(0), NEVER)
    for declare in (
        lambda: Key("hoodie.new"),
        lambda: Idle("hoodie.new", ""),
        lambda: NotHonoured("hoodie.new", "nothing is done"),
        lambda: IndexSwitch("hoodie.new", ""),
        lambda: KeptProperty("hoodie.new", Phase(0)),
        lambda: section("hoodie.new", True, "Whether it is new."),
    ):
        with pytest.raises(ValueError, match=r"^hoodie\.new is declared without an effect$"):
            declare()
    assert not section.options


@pytest.mark.parametrize("name", ["hoodie.clean.policy", "hoodie.cleaner.policy", "hoodie.metrics.on", "hoodie.aws."])
def test_a_key_cannot_be_declared_twice(name: str) -> None:
    """Not as an option, by its older name, as a key that is no option, or as the beginning of keys."""
    with pytest.raises(ValueError, match=f"^{re.escape(name)} is declared twice$"):
        Registry([*KNOWN.all_of(Key), Idle(name, "It is new.")])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_an_option_that_takes_code_takes_none_from_a_table(option: Option[Any]) -> None:
    try:
        value = option.parse("hostile_module:Hostile")
    except ValueError:
        return
    assert option.parse in (value_types.text, value_types.names) or not option.in_table.allows(value)


@pytest.mark.thorough
def test_each_honoured_key_is_read() -> None:
    read: set[str] = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.parent.name != "options" else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id.endswith("keys"):
                read.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("_keys"):
                read.update(one.name for one in node.names)
    options = {name: one for module in MODULES for name, one in vars(module).items() if isinstance(one, Option)}
    assert options.keys() - read == ONE_VALUE
    for name in ONE_VALUE:
        with pytest.raises(ConfigError):
            resolve([("test", {options[name].key: "something"})])


def asked_for(key: str) -> str:
    """A value of a key that asks for what is not done."""
    harmless = NOT_HONOURED[key].harmless
    return "true" if "false" in harmless else "false" if "true" in harmless else "something"


def rows(ts: int = 1) -> pa.Table:
    return pa.table({"id": ["k"], "day": ["d"], "ts": [ts]})


Run = Callable[[Request], Report]


def commands(path: Path, given: dict[str, str]) -> list[tuple[Request, Run]]:
    """Every command of the program on the table at `path`."""
    engine = LocalEngine()
    common: dict[str, Any] = {"base_path": str(path), "options": resolve([("test", {**QUICK, **given})])}
    found: list[tuple[Request, Any]] = [
        (WriteRequest(**common, operation=WriteOperation.UPSERT), lambda one: writing.write(one, rows(2).to_reader)),
        (
            WriteRequest(**common, operation=WriteOperation.DELETE_PARTITION, partitions=("none",)),
            writing.delete_partitions,
        ),
        (ClusteringRequest(**common, mode=Mode.SCHEDULE), clustering.schedule),
        (ClusteringRequest(**common, mode=Mode.EXECUTE), lambda one: clustering.execute(one, engine=engine)),
        (
            ClusteringRequest(**common, mode=Mode.SCHEDULE_AND_EXECUTE),
            lambda one: clustering.schedule_and_execute(one, engine=engine),
        ),
        (CompactionRequest(**common, mode=Mode.SCHEDULE), compaction.schedule),
        (CompactionRequest(**common, mode=Mode.EXECUTE), lambda one: compaction.execute(one, engine=engine)),
        (CleanRequest(**common), clean.clean),
        (ArchiveRequest(**common), archive.archive),
        (RollbackRequest(**common, instant="20200101000000000"), rollback.rollback),
        (UndoRequest(**common, instant="20200101000000000"), undo.undo),
        (RecoverRequest(**common), recover.recover),
        (ValidateRequest(**common), validate.validate),
        (OrphanFilesRequest(**common), orphan_files.manage_orphan_files),
        (IndexRequest(**common), lambda one: index_bootstrap(one, engine=engine)),
        (LookupRequest(**common, keys=pa.array(["k"])), index_lookup),
        (AdviseRequest(**common, predicates=((1.0, "ts > 5"),)), advise),
    ]
    return found


def test_commands_refuse_what_hudi_would_do_otherwise(tmp_path: Path) -> None:
    """Each command that a key concerns, before it looks at the table."""
    refused = 0
    for key, one in NOT_HONOURED.items():
        for request, run in commands(tmp_path / "none", {key: asked_for(key)}):
            if request.phase & one.refused:
                with pytest.raises(ConfigError, match=rf"^{key}=.* \(from test\) is not supported: ") as e:
                    run(request)
                assert one.what in e.value.message and e.value.hint
                refused += 1
    assert refused > 2 * sum(1 for one in NOT_HONOURED.values() if one.refused)


def test_commands_tell_what_does_not_happen(tmp_path: Path) -> None:
    """Each command that a key concerns, once, whatever comes of the command; and no other one."""
    warned = {key: asked_for(key) for key, one in NOT_HONOURED.items() if one.warned}
    secret = {key: "very-secret" for key in warned if NOT_HONOURED[key].is_secret}
    table = create(tmp_path / "rides", table_type="MERGE_ON_READ")
    table.insert(rows(), options=QUICK)
    for number, _ in enumerate(commands(table_path := tmp_path / "rides", {})):
        refusing = commands(table_path, {})[number][0].phase
        given = {key: value for key, value in warned.items() if not NOT_HONOURED[key].refused & refusing}
        reports: list[Report] = []
        request, run = commands(table_path, {**given, **secret})[number]
        object.__setattr__(request, "on_report", reports.append)
        with suppress(HudiServicesError):
            run(request)
        told = reports[0].warnings
        for key in warned:
            concerned = bool(NOT_HONOURED[key].warned & request.phase and not NOT_HONOURED[key].refused & request.phase)
            found = [one for one in told if one.startswith(f"{key}=")]
            assert len(found) == concerned, (request, key, told)
            assert all(one.endswith(NOT_HONOURED[key].what) and "very-secret" not in one for one in found)


def test_harmless_values_are_taken_in_silence() -> None:
    for key, one in NOT_HONOURED.items():
        for value in ("", *one.harmless, *(text.upper() for text in one.harmless)):
            options = resolve([("test", {key: value})])
            effects.refuse(options, one.refused)
            assert not list(effects.warnings(options, one.warned, ()))


def test_the_tables_own_properties_are_not_meant() -> None:
    asked = {key: asked_for(key) for key in NOT_HONOURED}
    options = resolve([]).over_table(asked, lenient=True)
    for one in NOT_HONOURED.values():
        effects.refuse(options, one.refused)
        assert not list(effects.warnings(options, one.warned, ()))


def test_indexes_are_neither_made_nor_deleted_by_the_way(tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    made = table.insert(rows(), options={**QUICK, **dict.fromkeys(MAKE_INDEXES, "true")})
    assert sum("no index is made by a write" in one for one in made.warnings) == len(MAKE_INDEXES)
    assert not table.insert(rows(), options={**QUICK, **dict.fromkeys(MAKE_INDEXES, "false")}).warnings
    table.build_index()
    assert not table.upsert(rows(2), options={**QUICK, "hoodie.metadata.record.index.enable": "true"}).warnings
    off = {"hoodie.metadata.record.index.enable": "false", "hoodie.metadata.enable": "false"}
    kept = table.upsert(rows(3), options={**QUICK, **off}).warnings
    assert [one.rpartition(": ")[2] for one in kept] == [
        "the table's record_index is kept, and follows every commit",
        "the table's metadata table is kept, and follows every commit",
    ]
    config = hudi_services.open(tmp_path / "rides", engine="local").config
    assert {"record_index", "files"} <= set(config["hoodie.table.metadata.partitions"].split(","))


def test_the_warnings_of_a_creation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create(tmp_path / "rides", options={"hoodie.client.init.callback.classes": "com.acme.Init"})
    assert "hoodie.client.init.callback.classes=com.acme.Init" in caplog.text
    with pytest.raises(ConfigError, match=r"hoodie\.metaserver\.enabled=true"):
        create(tmp_path / "other", options={"hoodie.metaserver.enabled": "true"})
    assert isinstance(hudi_services.open(tmp_path / "rides", engine="local"), hudi_services.Table)
