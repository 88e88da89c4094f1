import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services import file_names

UUID = "0b0b8b2e-7a0c-4f2a-9d53-0a5f2f0e4c11"

GOOD_BASE = [
    (f"{UUID}-0_0-57-108_20261121055358586.parquet", f"{UUID}-0", "0-57-108", "20261121055358586"),
    (f"{UUID}_1-0-1_20200101010101.parquet", UUID, "1-0-1", "20200101010101"),
    ("files-0000-0_0-5-6_00000000000000000.hfile", "files-0000-0", "0-5-6", "00000000000000000"),
    ("record-index-p%3Da%5Fb-0000-0_0-5-6_2026.hfile", "record-index-p%3Da%5Fb-0000-0", "0-5-6", "2026"),
    ("record-index-東 京-0000-0_0-5-6_2026.hfile", "record-index-東 京-0000-0", "0-5-6", "2026"),
]
BAD_BASE = [
    "",
    ".hoodie_partition_metadata",
    "part-00000.parquet",
    f"{UUID}-0_0-57-108_20261121055358586.parquet#1",
    f"{UUID}-0_0-57-108_20261121055358586.parquet.tmp",
    f".{UUID}-0_0-57-108_20261121055358586.parquet.crc",
    f"{UUID}-0_0-57-108_2026112105535858x.parquet",
    f"{UUID}.0_0-57-108_20261121055358586.parquet",
    f"{UUID}-0_0-57-108_٢٠٢٦.parquet",
    "p%3Da-0000-0_0-5-6_2026.parquet",
    "p%3Da.b-0000-0_0-5-6_2026.hfile",
]
GOOD_LOG = [
    (f".{UUID}-0_20261121055429928.log.1_1-255-566", 1, "1-255-566", ""),
    (f".{UUID}-0_20261121055429928.log.12", 12, "", ""),
    (f".{UUID}-0_20261121055429928.log.1_1-255-566.cdc", 1, "1-255-566", ".cdc"),
]
BAD_LOG = [
    "",
    ".x.log.1",
    f"{UUID}-0_2026.log.1_0-0-0",
    f".{UUID}-0_2026.log.a_0-0-0",
    f".{UUID}-0_2026.log.1_0-0-0.crc",
]


@pytest.mark.parametrize(("name", "file_id", "token", "instant"), GOOD_BASE)
def test_base_file_names(name: str, file_id: str, token: str, instant: str) -> None:
    file = file_names.parse_base_file("p", name, 5)
    assert file is not None
    assert (file.file_id, file.write_token, file.instant, file.path) == (file_id, token, instant, f"p/{name}")


@pytest.mark.parametrize("name", BAD_BASE)
def test_rejected_base_file_names(name: str) -> None:
    assert file_names.parse_base_file("", name, 0) is None


@pytest.mark.parametrize(("name", "version", "token", "suffix"), GOOD_LOG)
def test_log_file_names(name: str, version: int, token: str, suffix: str) -> None:
    file = file_names.parse_log_file("", name, 5)
    assert file is not None
    assert (file.file_id, file.version, file.write_token, file.suffix, file.path) == (
        f"{UUID}-0",
        version,
        token,
        suffix,
        name,
    )


@pytest.mark.parametrize("name", BAD_LOG)
def test_rejected_log_file_names(name: str) -> None:
    assert file_names.parse_log_file("", name, 0) is None


@given(st.uuids(), st.tuples(*[st.integers(0, 10**6)] * 3), st.integers(0, 10**17 - 1))
def test_round_trip(random: uuid.UUID, token: tuple[int, int, int], time: int) -> None:
    instant, write_token = f"{time:017}", "-".join(map(str, token))
    file_id = file_names.new_file_id(random)
    base = file_names.parse_base_file("", file_names.base_file_name(file_id, write_token, instant), 1)
    assert base is not None and (base.file_id, base.write_token, base.instant) == (file_id, write_token, instant)
    log = file_names.parse_log_file("", file_names.log_file_name(file_id, instant, 3, write_token), 1)
    assert log is not None and (log.file_id, log.version, log.instant) == (file_id, 3, instant)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    file_names.parse_base_file("", text, 0)
    file_names.parse_log_file("", text, 0)
