"""A table on S3: real Hudi with Hadoop's client (s3a) and this package write it in turns; hudi-rs reads it, too."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.clock import SystemClock
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage

from ..servers.bucket import Bucket
from ..servers.hadoop_settings import settings_folder
from ..servers.s3 import KEY, REGION, SECRET
from ..servers.s3a import class_path, settings_at
from ..servers.started import deep_on
from ..servers.versitygw import versitygw
from ..unit.dying_storage import Life, dying
from ..unit.faulty_storage import Killed
from .peer import EACH_DELTA_COMMIT, Peer
from .store_turns import Table, assert_named_as, in_turns

pytestmark = [*deep_on("versitygw"), pytest.mark.releases("1.2.0")]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with versitygw(tmp_path_factory.mktemp("versitygw")) as found:
        yield found


@pytest.fixture(scope="module")
def settings(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return settings_folder(tmp_path_factory.mktemp("settings"), settings_at(bucket.endpoint))


@pytest.fixture(scope="module")
def on_s3(version: str, settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Real Hudi of this release, which knows s3a."""
    started = Peer(version, tmp_path_factory.mktemp("on s3") / "log", "--class-path", class_path(settings))
    yield started
    started.close()


def _by_hudi_rs(bucket: Bucket, url: str) -> pa.Table:
    from hudi import HudiTableBuilder

    options = {
        "aws_endpoint": bucket.endpoint,
        "aws_allow_http": "true",
        "aws_region": REGION,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }
    table = HudiTableBuilder.from_base_uri(url).with_storage_options(options).build()
    return pa.Table.from_batches(pa.record_batch(batch) for batch in table.read())


def test_in_turns(on_s3: Peer, bucket: Bucket, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody but Hadoop's settings says where the store is: to Hudi, and to us.
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings))
    url = "s3a://lake/rides"
    table = Table(on_s3, url, tmp_path, ("s3://lake/rides", url), indexed=False)

    def check() -> None:
        table.check()
        table.check_rows(_by_hudi_rs(bucket, url))

    table.by_hudi(0, 40)
    table.by_hudi(10, 20)
    table.index_by_us()
    check()
    in_turns(table, check)


def test_hudi_takes_the_other_scheme(
    on_s3: Peer, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi, which knows s3a alone, carries out plans of ours that name files by s3://."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings))
    url = "s3://lake/other"
    table = Table(on_s3, "s3a://lake/other", tmp_path, (url,), indexed=True)
    table.by_hudi(0, 40)
    table.by_us(10, 20)
    table.ours("schedule")
    assert_named_as(url)
    table.service_by_hudi("run_clustering", "execute")
    table.check()
    assert not open_snapshot(open_storage(url), SystemClock()).timeline.pending()
    for _ in range(2):
        table.by_us(0, 40)
        table.ours("compact", "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT)
    # Killed when the plan is written.
    ours = hudi_services.open(url, engine="local")
    ours._storage = dying(ours._storage, Life(last=r"\.clean\.requested$"))
    with pytest.raises(Killed):
        ours.clean(options={"hoodie.clean.commits.retained": "1"})
    table.clean_by_hudi()
    table.check()
    assert not open_snapshot(open_storage(url), SystemClock()).timeline.pending()
