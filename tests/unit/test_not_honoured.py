"""Options of Hudi's writers that are not honoured, or that say of a table what it is not: refused, or named."""

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.ingest.creation import check_definition
from hudi_services.options import resolve
from hudi_services.options.option import NotHonoured, Phase
from hudi_services.options.registry import KNOWN
from hudi_services.table_config import TableConfig
from hudi_services.versions import VERSIONS

from .rides import FILTERS, create
from .tables import both_views

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_W = "hoodie.datasource.write."
_MODEL = "org.apache.hudi.common.model."
_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
_OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
NOT_HONOURED = {one.key: one for one in KNOWN.all_of(NotHonoured)}


def rows(ts: int = 1, text: str = "a") -> pa.Table:
    return pa.table({"id": ["k"], "day": ["d"], "ts": [ts], "text": [text]})


@pytest.mark.parametrize("key", [key for key, one in NOT_HONOURED.items() if one.refused & Phase.CREATE])
def test_what_would_write_other_rows_is_refused(key: str, tmp_path: Path) -> None:
    """By a write and by a creation, before anything is written."""
    wrong = {key: "false" if "true" in NOT_HONOURED[key].harmless else "true"}
    with pytest.raises(ConfigError, match=rf"{key}=\w+ \(from .*\) is not supported"):
        create(tmp_path / "new", options={**FILTERS, **wrong})
    assert not (tmp_path / "new").exists()
    table = create(tmp_path / "rides")
    with pytest.raises(ConfigError, match=rf"{key}=\w+ \(from .*\) is not supported"):
        table.upsert(rows(), options={**FILTERS, **wrong})
    assert not table.timeline().num_rows


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "options",
    [
        {f"{_W}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"},
        {f"{_W}keygenerator.type": "NON_PARTITION"},
        {f"{_W}hive_style_partitioning": "true"},
        {f"{_W}partitionpath.urlencode": "true"},
        {"hoodie.populate.meta.fields": "false"},
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {f"{_W}payload.class": _MODEL + "PartialUpdateAvroPayload"},
        {f"{_W}payload.class": "com.acme.Payload"},
        {"hoodie.table.timeline.timezone": "UTC"},
        {f"{_W}storage.type": "COPY_ON_WRITE"},
    ],
    ids=lambda options: " ".join(options),
)
def test_a_table_is_what_it_is(options: dict[str, str], version: int, tmp_path: Path) -> None:
    table = create(tmp_path / "rides", table_type="MERGE_ON_READ", table_version=version)
    with pytest.raises(ConfigError, match="does not fit the table"):
        table.upsert(rows(), options={**FILTERS, **options})
    assert not table.timeline().num_rows


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_as_the_table_is_accepted(version: int, tmp_path: Path) -> None:
    payload = {} if version == 6 else {f"{_W}payload.class": _MODEL + "DefaultHoodieRecordPayload"}
    said = {
        **payload,
        f"{_W}keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        f"{_W}hive_style_partitioning": "true",
        f"{_W}partitionpath.urlencode": "false",
        "hoodie.populate.meta.fields": "true",
        f"{_W}storage.type": "MERGE_ON_READ",
        "hoodie.table.timeline.timezone": "UTC",
    }
    table = create(tmp_path / "rides", table_version=version, options={**FILTERS, **said})
    assert table.upsert(rows(), options={**FILTERS, **said}).ok
    assert table.upsert(rows(2), options=FILTERS).ok


@pytest.mark.parametrize("stored", ["SIMPLE", "SIMPLE_AVRO"])
def test_a_key_generator_has_two_names(stored: str, tmp_path: Path) -> None:
    """Hudi's writers may store the type of the generator of Avro records; the class that is given is the same."""
    table = create(tmp_path / "rides", table_version=8)
    config = TableConfig({**table.config, "hoodie.table.keygenerator.type": stored}, VERSIONS[8])
    given = {f"{_W}keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}
    check_definition(resolve([("test", given)]), config)
    with pytest.raises(ConfigError, match="does not fit the table, which has SIMPLE"):
        check_definition(resolve([("test", {f"{_W}keygenerator.type": "COMPLEX"})]), config)


def test_the_payload_class_of_a_write(tmp_path: Path) -> None:
    """Copy-on-write tables of version 6 store none: each write says how its rows are merged, as in Hudi 0.15.0."""
    by_time = {**FILTERS, f"{_W}payload.class": _MODEL + "DefaultHoodieRecordPayload"}
    for name, options, newest in (("newer", FILTERS, "late"), ("greater", by_time, "early")):
        table = create(tmp_path / name, table_version=6, ordering="ts", options=options)
        table.upsert(rows(10, "early"), options=options)
        table.upsert(rows(5, "late"), options=options)
        assert both_views(tmp_path / name)[0]["text"].to_pylist() == [newest]
    with pytest.raises(hudi_services.UnsupportedTable, match=r"payload.class=com.acme.Payload"):
        table.upsert(rows(), options={**FILTERS, f"{_W}payload.class": "com.acme.Payload"})


@pytest.mark.parametrize("more", [_LOCK, {**_LOCK, **_OCC}])
def test_eager_rollbacks_are_refused_beside_other_writers(more: dict[str, str], tmp_path: Path) -> None:
    table = create(tmp_path / "rides")
    eager = {**FILTERS, **more, "hoodie.clean.failed.writes.policy": "EAGER"}
    with pytest.raises(ConfigError, match=r"policy=EAGER .* rolls back what the others are writing"):
        table.insert(rows(), options=eager)
    assert not table.timeline().num_rows
    told = table.insert(rows(), options={**FILTERS, **more})
    assert told.ok and ("takes this write for a failed one" in " ".join(told.warnings)) == (more is _LOCK)
    assert not table.insert(rows(), options={**FILTERS, **_LOCK, **_OCC}).warnings
