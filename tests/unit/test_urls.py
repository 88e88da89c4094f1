"""A URL names a place and nothing else: anything else in it is refused, and never shown."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore import exceptions as obx

from hudi_services.cli.app import run
from hudi_services.errors import ConfigError, StorageError
from hudi_services.options import lock_keys, resolve
from hudi_services.stores import open_storage
from hudi_services.urls import check_url, message_without_secrets, without_secrets

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
    f"hdfs://host:{SECRET}/rides",
    f"hdfs://user:12/{SECRET}@host/rides",
    f"s3://KEY:12/{SECRET}@bucket/rides",
    f"s3://bucket:{SECRET}/rides",
    f"hdfs://host:8020:{SECRET}/rides",
    f"hdfs://host:123456{SECRET}/rides",
    f"file://user:{SECRET}@host/rides",
    f"file:///rides?{SECRET}",
    f"s3://[{SECRET}:@/",
]
LIKE_PATHS = [
    f"s3:/KEY:{SECRET}@bucket/rides",
    f"s3:KEY:{SECRET}@bucket/rides",
    f" s3://KEY:{SECRET}@bucket/rides",
    f"s3://KEY:{SECRET}@bucket/rides\t",
    f"\n s3:/KEY:{SECRET}@bucket/rides",
    f"jdbc:s3://KEY:{SECRET}@bucket/rides",
    f"./s3://KEY:{SECRET}@bucket/rides",
    f"https:/host/rides?sig={SECRET}",
]
"""Which are none, and no URLs."""
PLACES = [
    "/data/a:b",
    "rel/a:b",
    "a:b",
    "C:/data",
    "./s3:/data",
    "/data/rides",
    "relative?#@:/path",
    "file:/data/rides",
    "file:///data/rides",
    "file://localhost/data/rides",
    "s3://bucket/a@b:c/d",
    "s3a://bucket",
    "gs://bucket/rides",
    "hdfs://namenode:8020/data/rides",
    "hdfs://[::1]:8020/data/rides",
    "hdfs://nameservice/data/a b",
    "hdfs:///data/rides",
    "viewfs://cluster/data/rides",
    "abfss://container@account.dfs.core.windows.net/rides",
]


@pytest.mark.thorough
@pytest.mark.parametrize("url", [*WITH_SECRETS, *(url for url in LIKE_PATHS if url.isprintable())])
@pytest.mark.parametrize(
    "flags",
    [["--base-path"], ["--props"], ["--conf-file"], ["--hoodie-conf", f"{lock_keys.LOCK_FOLDER.key}="], ["include="]],
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
    assert "holds" in said.err or "names the host" in said.err or "blank" in said.err
    if flags != ["--base-path"]:
        assert digest(table) == before


def test_a_lock_folder_of_the_table_is_not_repeated_either(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = unpack("1.2.0", tmp_path)
    with (table / ".hoodie/hoodie.properties").open("a") as file:
        file.write(f"{lock_keys.LOCK_FOLDER.key}=s3\\://KEY\\:{SECRET}@bucket/x\n")
    assert run(["schedule", "--verbose", "--format", "json", "--base-path", str(table)]) == 2
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err and lock_keys.LOCK_FOLDER.key in said.err


@pytest.mark.parametrize("url", PLACES)
def test_places_are_taken(url: str) -> None:
    check_url(url)
    assert without_secrets(url) == url
    open_storage(url)
    assert resolve([("x", {lock_keys.LOCK_FOLDER.key: url})])[lock_keys.LOCK_FOLDER] == url


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "az"])
def test_a_bucket_has_no_port(scheme: str) -> None:
    for take in (check_url, open_storage):
        with pytest.raises(ConfigError, match="holds a port, and a bucket has none") as told:
            take(f"{scheme}://minio:9000/lake/rides")
        assert "AWS_ENDPOINT=http://minio:9000" in message_without_secrets(told.value.hint)


def test_the_host_of_a_file_url_is_not_dropped() -> None:
    with pytest.raises(ConfigError, match="names the host data") as caught:
        open_storage("file://data/rides")
    assert "file:///data/rides" in caught.value.hint
    assert open_storage("file:///data/rides").root == open_storage("file:/data/rides").root == "/data/rides"


@given(user=st.text("abc:/@?#% é", max_size=8), rest=st.text(max_size=20))
def test_any_text_is_a_place_or_a_sentence(user: str, rest: str) -> None:
    for url in (f"s3://{user}{SECRET}@{rest}", f"{user}://{rest}", rest):
        try:
            check_url(url)
        except ConfigError as error:
            assert SECRET not in error.message + error.hint
            assert SECRET not in without_secrets(url)


@pytest.mark.parametrize("path", LIKE_PATHS)
def test_what_is_like_a_url_is_no_path(path: str) -> None:
    for take in (check_url, open_storage):
        with pytest.raises(
            ConfigError, match=r"^the URL (.*holds a user|is neither a path nor a URL|begins or ends with a blank)"
        ) as e:
            take(path)
        assert SECRET not in e.value.message + e.value.hint


@pytest.mark.parametrize(
    "flags",
    [
        ["schedule", "--report"],
        ["index-lookup", "--report"],
        ["index-lookup", "--keys-file"],
        ["schedule", "--mode"],
        ["schedule", "--format"],
        ["schedule", "--table-name"],
        ["schedule", "--instant-time"],
        ["schedule"],
        [],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "url", [WITH_SECRETS[0], WITH_SECRETS[2], WITH_SECRETS[3], LIKE_PATHS[0], f"s3://K:a {SECRET}@b"]
)
def test_no_argument_is_repeated_with_a_secret(
    flags: list[str], url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = unpack("1.2.0", tmp_path)
    base = ["--base-path", str(table)] if flags else []
    keys_file = ["--keys-file", "/dev/null"] if flags[:1] == ["index-lookup"] and flags[1] != "--keys-file" else []
    report = ["--report", "r.json"] if "--report" not in flags else []
    assert run([*flags[:1], *base, *keys_file, *(report if flags else []), "--verbose", *flags[1:], url]) != 0
    said = capfd.readouterr()
    kept = Path("r.json").read_text() if Path("r.json").exists() else ""
    assert SECRET not in said.out + said.err + kept
    assert "error: " in said.err


def test_a_value_after_a_blank_is_not_taken_for_the_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first = of the line is in the value, and all before it is the key to Hudi."""
    (tmp_path / "props").write_text(f"hoodie.datasource.hive_sync.pass {SECRET}==\n")
    table = unpack("1.2.0", tmp_path)
    report = tmp_path / "report.json"
    arguments = ["schedule", "--dry-run", "--verbose", "--base-path", str(table), "--props", str(tmp_path / "props")]
    run([*arguments, "--report", str(report), "--hoodie-conf", f"hoodie.some.pass {SECRET}="])
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err + report.read_text()
    assert "warning: hoodie.datasource.hive_sync.pass … (from --props" in said.err
    assert "there is a blank before the first =" in said.err


def test_an_endpoint_with_a_password_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, f"http://KEY:{SECRET}@localhost:1/")
    storage = open_storage("s3://bucket/rides")
    with pytest.raises(StorageError) as error, storage.errors("x"):
        raise OSError(f"Error performing GET http://KEY:{SECRET}@localhost:1/bucket?list-type=2 in 3s - error sending")
    assert str(error.value) == "s3://bucket/rides/x: Error performing GET http://… in 3s - error sending"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"'s3://K:{SECRET}@b/x' is none of a, b", "'s3://…' is none of a, b"),
        (f"'s3://K:a {SECRET}@b/x' is none of a, b", "'s3://…' is none of a, b"),
        (f"s3://K:1/{SECRET}@b/x and s3://a:{SECRET} and s3://c/d", "s3://… and s3://… and s3://c/d"),
        (f"s3:/K:{SECRET}@b/x is none", "s3:/… is none"),
        (f"GET https://h/x?a=b&sig={SECRET} in 3s", "GET https://h/x?… in 3s"),
        (f"abfss://c@a.net/x?sig={SECRET}, it says", "abfss://c@a.net/x?… it says"),
        (f"jdbc:s3://K:{SECRET}@b\nnext", "jdbc:s3://…\nnext"),
        (f"s3://b/x#{SECRET}", "s3://b/x#…"),
    ],
)
def test_messages_lose_secrets(message: str, shown: str) -> None:
    assert message_without_secrets(message) == shown
    assert message_without_secrets(shown) == shown


@pytest.mark.parametrize(
    "message",
    [
        *PLACES,
        "s3://bucket/rides/what?/c#d/x@y:z.parquet does not exist: ask a@b",
        "s3://bucket: nothing is there",
        "Error performing GET http://minio:9000/bucket/x after 3 retries, http://[::1]:9000/x too",
        "abfss://c@account.dfs.core.windows.net/rides is not there (or file:/data/a@b is)",
    ],
)
def test_honest_messages_stay(message: str) -> None:
    assert message_without_secrets(message) == message


@pytest.mark.thorough
def test_long_messages_take_no_time() -> None:
    """Time that grew with the square of the length would be minutes. Where coverage is measured, all takes longer."""
    start = time.process_time()
    for part in ("x", "s3://", ":/", "s3://x?", "?", "s3://a@", "@", "a b://"):
        message_without_secrets("s3://b/" + part * 100_000)
        message_without_secrets(part * 100_000)
    assert time.process_time() - start < 15


def test_the_demo_of_the_shell_needs_no_import_to_refuse(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hudi_services", "schedule", "--base-path", WITH_SECRETS[0]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("said", "is_about_credentials"),
    [
        ("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 4.8ms - 403", True),
        ("Generic GCS error: Error performing GET http://metadata.google.internal/computeMetadata/v1/x", True),
        ("Generic S3 error: Error performing GET http://store:9000/lake in 2s - connection refused", False),
    ],
)
def test_a_store_without_credentials_says_where_they_come_from(said: str, is_about_credentials: bool) -> None:
    with pytest.raises(StorageError) as caught, open_storage("s3://lake/rides").errors("x"):
        raise obx.GenericError(said)
    assert ("the environment has no credentials for the store" in caught.value.hint) == is_about_credentials
