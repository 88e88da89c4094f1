"""Creating a table: all at once or not at all, and only what makes sense."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_services
from hudi_services.errors import AlreadyExists, ConfigError
from hudi_services.ingest import creation
from hudi_services.new_tables.definition import PartKind, TableDefinition
from hudi_services.options import resolve
from hudi_services.options.creation_keys import KeyGenerator
from hudi_services.stores import open_storage
from hudi_services.table_config import TableConfig
from hudi_services.versions import VERSIONS

from .faulty_storage import FaultyStorage, Killed

_TIME = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
_PACKAGE = "org.apache.hudi.keygen."


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def create(path: Path, **arguments: Any) -> hudi_services.Table:
    known = {"name": "rides", "record_key": "id", "partition_by": "day", "ordering": "ts", "engine": "local"}
    return hudi_services.create(path, **{**known, **arguments})


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_table(version: int, tmp_path: Path) -> None:
    """Every service finds nothing to do."""
    table = create(tmp_path / "new/table", table_version=version)
    assert (table.name, table.version, table.schema()) == ("rides", version, None)
    assert table.slices().num_rows == table.files().num_rows == table.timeline().num_rows == 0
    options = {"hoodie.clustering.plan.strategy.small.file.limit": 1000}
    results = [table.cluster(options=options), table.clean(), table.validate(), table.recover()]
    assert [one.exit_code for one in results] == [0] * len(results)
    assert [file.name for file in table_files(tmp_path)] == ["hoodie.properties"]


def table_files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "a/b"}, "a table needs a name"),
        ({"record_key": None}, "a table needs a record key"),
        ({"record_key": ["id", "id"]}, "a record key field is given twice: id,id"),
        ({"record_key": ["a,b"]}, "takes the names of columns, which have no commas"),
        ({"table_version": 7}, "is none of 6, 8, 9"),
        ({"table_type": "APPEND_ONLY"}, "is none of COPY_ON_WRITE, MERGE_ON_READ"),
        ({"table_version": 8, "ordering": ["a", "b"]}, "tables of version 8 have one ordering field at most, not a,b"),
        ({"options": {"hoodie.datasource.write.keygenerator.class": "org.acme.Keys"}}, "is none of SIMPLE, COMPLEX"),
        (
            {"options": {"hoodie.datasource.write.keygenerator.type": "CUSTOM"}},
            "day does not say how day makes its part",
        ),
        ({"partition_by": "day:SIMPLE,ts:HOURLY"}, "ts:HOURLY does not say how ts makes its part"),
        ({"partition_by": "day,ts:TIMESTAMP", "options": _TIME}, "do not fit together"),
        ({"partition_by": "ts:TIMESTAMP"}, "needs hoodie.keygen.timebased.timestamp.type"),
        ({"options": {"hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}}, "needs hoodie.keygen.timebased"),
        (
            {"options": {"hoodie.datasource.write.keygenerator.class": f"{_PACKAGE}NonpartitionedKeyGenerator"}},
            "NonpartitionedKeyGenerator makes no partitions, and the partition field day was given",
        ),
        (
            {"partition_by": None, "options": {"hoodie.datasource.write.keygenerator.type": "COMPLEX"}},
            "ComplexKeyGenerator needs a partition field",
        ),
        (
            {"record_key": "a,b", "options": {"hoodie.datasource.write.keygenerator.type": "SIMPLE"}},
            "SimpleKeyGenerator takes one record key field, and 2 were given",
        ),
        (
            {"partition_by": "a,b", "options": {"hoodie.datasource.write.keygenerator.type": "SIMPLE"}},
            "SimpleKeyGenerator takes one partition field, and 2 were given",
        ),
        (
            {"options": {"hoodie.datasource.write.payload.class": "org.acme.Payload"}},
            "the payload class org.acme.Payload is not supported in new tables",
        ),
        (
            {"ordering": None, "options": {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}},
            "EVENT_TIME_ORDERING needs an ordering field",
        ),
        (
            {"table_version": 6, "options": {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}},
            "a table of version 6 has no merge mode",
        ),
        (
            {
                "options": {
                    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
                    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
                }
            },
            "does not merge by COMMIT_TIME_ORDERING",
        ),
    ],
)
def test_what_makes_no_table(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        create(tmp_path / "table", **arguments)
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("folder", ["rides", "my-table", "größe 2"])
@pytest.mark.parametrize("slashes", ["", "/", "//"])
def test_a_table_without_a_name_is_named_after_its_folder(folder: str, slashes: str, tmp_path: Path) -> None:
    for name in (None, ""):
        shutil.rmtree(tmp_path / folder, ignore_errors=True)
        assert create(f"{tmp_path / folder}{slashes}", name=name).name == folder
    assert hudi_services.open(tmp_path / folder, engine="local").name == folder
    url = (tmp_path / f"of a {folder}").as_uri()
    assert create(f"{url}{slashes}", name=None).name == f"of a {folder}"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket/lake/rides", "rides"),
        ("s3://bucket/my%20rides/", "my rides"),
        ("abfss://lake@account.dfs.core.windows.net/rides", "rides"),
        ("/data/100%25", "100%25"),
        ("s3://bucket", ""),
        ("s3://bucket//", ""),
        ("abfss://lake@account.dfs.core.windows.net", ""),
        ("/", ""),
    ],
)
def test_the_folder_of_a_url(url: str, name: str) -> None:
    root = open_storage(url).root
    options = resolve([("--hoodie-conf", {"hoodie.datasource.write.recordkey.field": "id"})])
    if name:
        assert creation.definition(options, root).name == name
        return
    with pytest.raises(ConfigError, match="no folder that could give a new table its name") as caught:
        creation.definition(options, root)
    assert caught.value.hint == "set hoodie.table.name"


def test_the_arguments_count_more_than_the_options(tmp_path: Path) -> None:
    """Options may have older names."""
    options = {"hoodie.table.name": "other", "hoodie.datasource.write.precombine.field": "at"}
    assert create(tmp_path, ordering=None, options=options).config["hoodie.table.ordering.fields"] == "at"
    assert hudi_services.open(tmp_path).name == "rides"


def test_a_table_that_exists(tmp_path: Path) -> None:
    create(tmp_path)
    before = (tmp_path / ".hoodie/hoodie.properties").read_bytes()
    with pytest.raises(AlreadyExists, match="has files of a table in its folder"):
        create(tmp_path, name="another")
    (tmp_path / ".hoodie/hoodie.properties").rename(tmp_path / ".hoodie/hoodie.properties.backup")
    with pytest.raises(AlreadyExists):
        create(tmp_path, name="another")
    assert [file.read_bytes() for file in table_files(tmp_path)] == [before]


def test_two_at_once(tmp_path: Path) -> None:
    def attempt(number: int) -> int | None:
        with suppress(AlreadyExists):
            return int(create(tmp_path, name=f"t{number}").name[1:])
        return None

    with ThreadPoolExecutor(8) as pool:
        won = [one for one in pool.map(attempt, range(8)) if one is not None]
    assert [f"t{one}" for one in won] == [hudi_services.open(tmp_path).name]


def test_killed_anywhere(tmp_path: Path) -> None:
    """The next attempt creates the table."""
    options = resolve([("test", {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"})])
    for survived in range(10):
        shutil.rmtree(tmp_path)
        storage = FaultyStorage(str(tmp_path), survived)
        with suppress(Killed):
            creation.create(storage, options)
            break
        assert not table_files(tmp_path)
        with suppress(AlreadyExists):
            creation.create(open_storage(str(tmp_path)), options)
        assert TableConfig.load(open_storage(str(tmp_path))).name == "t"
    assert survived == 1


_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.$ é]{0,8}[A-Za-z0-9]", fullmatch=True)


@st.composite
def definitions(draw: st.DrawFn) -> TableDefinition:
    version = VERSIONS[draw(st.sampled_from(sorted(VERSIONS)))]
    generator = draw(st.sampled_from(KeyGenerator))
    single = generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP)
    most = 1 if single else 3
    keys = draw(st.lists(_NAMES, min_size=1, max_size=most, unique=True))
    least = 0 if generator is KeyGenerator.NON_PARTITION else 1
    fields = draw(st.lists(_NAMES, min_size=least, max_size=most * least, unique=True))
    kinds = [draw(st.sampled_from(PartKind)) for _ in fields] if generator is KeyGenerator.CUSTOM else []
    ordering = draw(st.lists(_NAMES, max_size=2 if version.number > 8 else 1, unique=True))
    return TableDefinition(
        name=draw(_NAMES),
        version=version,
        record_key=tuple(keys),
        partition_by=tuple(fields),
        partition_kinds=tuple(kinds),
        ordering=tuple(ordering),
        type=draw(st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"])),
        key_generator=generator,
        hive_style=draw(st.booleans()),
        url_encode=draw(st.booleans()),
        meta_fields=draw(st.booleans()),
        zone=draw(st.sampled_from(["LOCAL", "UTC"])),
        time_options=_TIME,
    )


@given(one=definitions())
def test_properties_say_what_the_definition_says(
    one: TableDefinition, tmp_path_factory: pytest.TempPathFactory
) -> None:
    storage = open_storage(str(tmp_path_factory.mktemp("table")))
    TableConfig.create(storage, one.properties())
    found = TableConfig.load(storage)
    assert (found.name, found.version, found.type) == (one.name, one.version, one.type)
    assert (found.record_key_fields, found.partition_fields) == (one.record_key, one.partition_by)
    assert found.ordering_fields == one.ordering
    assert found.key_generator.rpartition(".")[2] in (one.key_generator.name, one.key_generator.value)
    assert (found.hive_style, found.url_encode) == (one.hive_style, one.url_encode)
    assert (found.populate_meta_fields, found.timeline_zone) == (one.meta_fields, one.zone)
    assert json.dumps(dict(found.raw))
