"""A run that publishes late is killed at any write: Hudi reads the rows, the next run repairs, and Hudi goes on."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import NothingToDo
from hudi_services.jobs import clustering
from hudi_services.runs.request import Mode

from ..tiers import DEEP
from ..unit.faulty_storage import FaultyStorage, Killed
from ..unit.repairs import NO_HEARTBEAT
from ..unit.tables import request
from ..unit.test_salvage import Meanwhile
from .conftest import Tables
from .peer import Peer
from .pristine import Pristine
from .readers import same_rows
from .reading import Reading
from .test_publish_late import _PATIENT, go_on, of_one_partition
from .test_salvage import check, updated, values


@pytest.mark.deep
@pytest.mark.parametrize("way", ["staged", "reserved"])
@pytest.mark.parametrize("writer", [False, True], ids=["alone", "writer"])
@pytest.mark.releases(*(["0.15.0", "1.0.2", "1.2.0"] if DEEP else ["1.2.0"]))
def test_killed_at_any_write(way: str, writer: bool, peer: Peer, known: Pristine, table: Tables) -> None:
    path, before = table("plain"), known.rows("plain")
    theirs = of_one_partition(before)
    if writer:
        # The rows of all runs are the same: the write is made before the copy, and once more during each run.
        peer.upsert(path, theirs)
    wanted = updated(before, theirs) if writer else values(before)
    made = Path(shutil.copytree(path, path.with_name("made")))
    options = {**_PATIENT, "hudi.services.publish.late": way, "hoodie.write.lock.wait_time_ms": "2000"}

    def run(writes: int | None) -> FaultyStorage:
        shutil.rmtree(path)
        shutil.copytree(made, path)
        storage = FaultyStorage(str(path), writes)
        late = request(path, Mode.SCHEDULE_AND_EXECUTE, options, publish_late=True)
        engine = Meanwhile(lambda: peer.upsert(path, theirs)) if writer else LocalEngine()
        with suppress(Killed):
            clustering.schedule_and_execute(late, storage, engine)
        return storage

    steps = run(None).log
    first = next(number for number, step in enumerate(steps) if "shown.json" in step)
    # Around the publication every step, before it and after it some.
    chosen = range(first - 2, len(steps), 1 if DEEP else 4)
    for survived in chosen:
        run(survived)
        for reader, rows in Reading.of(peer, path).rows.items():
            assert same_rows(wanted, values(rows)) == [], (survived, steps[survived], reader)
        again = request(path, Mode.SCHEDULE_AND_EXECUTE, {**options, **NO_HEARTBEAT}, publish_late=True)
        with suppress(NothingToDo):
            clustering.schedule_and_execute(again, None, LocalEngine())
        for reader, rows in Reading.of(peer, path).rows.items():
            assert same_rows(wanted, values(rows)) == [], (survived, steps[survived], reader)
    # Killed in the middle of the publication; then Hudi writes, cleans and archives.
    run((first + len(steps)) // 2)
    with suppress(NothingToDo):
        clustering.schedule_and_execute(again, None, LocalEngine())
    wanted = go_on(peer, path, wanted, 30 if DEEP else 6)
    check(peer, path, wanted)
