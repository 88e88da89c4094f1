"""Damaged log files: a typed error that names the file, and never a wrong row where the damage can be seen.

Log blocks have no checksum, so that a flipped bit in a value stays unseen; lost or added bytes do not.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import HudiServicesError
from hudi_services.jobs import compaction
from hudi_services.options import resolve
from hudi_services.runs.request import CompactionRequest, Mode

from ..tiers import DEEP
from . import histories
from .tables import RELEASES, open_local
from .test_merge_histories import comparable, merged_rows

CASES = 400 if DEEP else 12
EACH = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
Damage = Callable[[random.Random, bytes], bytes]


def flipped(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def removed(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + 1 + chance.randrange(40) :]


def doubled(chance: random.Random, data: bytes) -> bytes:
    low = chance.randrange(len(data))
    high = min(len(data), low + 1 + chance.randrange(400))
    return data[:high] + data[low:high] + data[high:]


def inserted(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(1 + chance.randrange(40)) + data[at:]


@pytest.mark.thorough
@pytest.mark.sweep
@pytest.mark.parametrize("damage", [flipped, cut, removed, doubled, inserted])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["default_order", "merge_into", "of_decimal", "parquet_blocks", "log_compaction"])
def test_damage(release: str, name: str, damage: Damage, tmp_path: Path) -> None:
    if name not in histories.names(release):
        return
    original = histories.MadeHistory(release, name, tmp_path / "made").path
    before = comparable(merged_rows(open_local(original), 1 << 20))
    chance = random.Random(f"{release} {name} {damage.__name__}")
    path = tmp_path / "table"
    for _ in range(-(-CASES // 8)):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original, path)
        logs = sorted(file for file in path.glob("p0/.*.log.*") if file.suffix != ".crc")
        file = chance.choice(logs)
        whole = file.read_bytes()
        data = damage(chance, whole)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        file.write_bytes(data)
        try:
            wanted = CompactionRequest(base_path=str(path), mode=Mode.SCHEDULE_AND_EXECUTE, options=EACH)
            compaction.schedule_and_execute(wanted, engine=LocalEngine())
        except HudiServicesError as error:
            assert file.name in error.message or "/p0/" in error.message, error
            continue
        # A merge of what a flipped bit changed may give other rows.
        if damage is not flipped:
            assert data == whole or comparable(merged_rows(open_local(path), 1 << 20)) == before
