"""A URL names a place and nothing else: what else stands in it is refused, and shown nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.cli.app import run
from hudi_services.errors import ConfigError
from hudi_services.options import keys, resolve
from hudi_services.storage import ObjectStorage
from hudi_services.urls import check_url, without_secrets

from .tables import digest, unpack

SECRET = "Zecret"
WITH_SECRETS = [
    f"s3://KEY:{SECRET}@bucket/rides",
    f"s3a://{SECRET}@bucket/rides",
    f"s3://KEY:{SECRET}/with/slash@bucket/rides",
    f"s3://bucket/rides?X-Amz-Signature={SECRET}",
    f"s3://bucket/rides#{SECRET}",
    f"S3://KEY:{SECRET}@bucket",
    f"gs://x:{SECRET}@bucket/rides",
    f"az://container/rides?sig={SECRET}",
    f"abfss://container:{SECRET}@account.dfs.core.windows.net/rides",
    f"abfss://container@account.dfs.core.windows.net/rides?sv=1&sig={SECRET}",
    f"wasbs://a@{SECRET}@account.blob.core.windows.net/rides",
    f"https://user:{SECRET}@host/rides",
    f"hdfs://user:{SECRET}@host/rides",
    f"file://user:{SECRET}@host/rides",
    f"file:///rides?{SECRET}",
    f"s3://[{SECRET}:@/",
]
PLACES = [
    "/data/rides",
    "relative?#@:/path",
    "file:/data/rides",
    "file:///data/rides",
    "file://localhost/data/rides",
    "s3://bucket/a@b:c/d",
    "s3a://bucket",
    "gs://bucket/rides",
    "abfss://container@account.dfs.core.windows.net/rides",
]


@pytest.mark.parametrize("url", WITH_SECRETS)
@pytest.mark.parametrize(
    "flags",
    [["--base-path"], ["--props"], ["--conf-file"], ["--hoodie-conf", f"{keys.LOCK_FOLDER.key}="], ["include="]],
    ids=lambda flags: flags[-1],
)
def test_secrets_are_refused_and_not_repeated(
    flags: list[str], url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    arguments = ["schedule", "--verbose", "--format", "json", "--report", str(report)]
    if flags == ["--base-path"]:
        arguments += [*flags, url]
    else:
        table = unpack("1.2.0", tmp_path)
        before = digest(table)
        arguments += ["--base-path", str(table)]
        if flags == ["include="]:
            (tmp_path / "props").write_text(f"include={url}\n")
            arguments += ["--props", str(tmp_path / "props")]
        else:
            arguments += [*flags[:-1], flags[-1] + url] if "=" in flags[-1] else [*flags, url]
    assert run(arguments) == 2
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err + report.read_text()
    assert "holds" in said.err or "names the host" in said.err
    if flags != ["--base-path"]:
        assert digest(table) == before


def test_a_lock_folder_of_the_table_is_not_repeated_either(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = unpack("1.2.0", tmp_path)
    with (table / ".hoodie/hoodie.properties").open("a") as file:
        file.write(f"{keys.LOCK_FOLDER.key}=s3\\://KEY\\:{SECRET}@bucket/x\n")
    assert run(["schedule", "--verbose", "--format", "json", "--base-path", str(table)]) == 2
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err and keys.LOCK_FOLDER.key in said.err


@pytest.mark.parametrize("url", PLACES)
def test_places_are_taken(url: str) -> None:
    check_url(url)
    assert without_secrets(url) == url
    ObjectStorage(url)
    assert resolve([("x", {keys.LOCK_FOLDER.key: url})])[keys.LOCK_FOLDER] == url


def test_the_host_of_a_file_url_is_not_dropped() -> None:
    with pytest.raises(ConfigError, match="names the host data") as caught:
        ObjectStorage("file://data/rides")
    assert "file:///data/rides" in caught.value.hint
    assert ObjectStorage("file:///data/rides").root == ObjectStorage("file:/data/rides").root == "/data/rides"


@given(user=st.text("abc:/@?#% é", max_size=8), rest=st.text(max_size=20))
def test_any_text_is_a_place_or_a_sentence(user: str, rest: str) -> None:
    for url in (f"s3://{user}{SECRET}@{rest}", f"{user}://{rest}", rest):
        try:
            check_url(url)
        except ConfigError as error:
            assert SECRET not in error.message + error.hint
            assert SECRET not in without_secrets(url)


def test_the_demo_of_the_shell_needs_no_import_to_refuse(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hudi_services", "schedule", "--base-path", WITH_SECRETS[0]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and SECRET not in done.stdout + done.stderr
