"""Endpoints and credentials of object stores by Hadoop's core-site.xml."""

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.stores import open_storage
from hudi_services.stores.options import StorageOptions, Value

from ..servers.hadoop_settings import settings_folder
from ..servers.s3a import settings_at
from ..servers.started import Servers, deep_on

KEYS = {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "SECRET"}
ACCOUNT = "account.dfs.core.windows.net"
AZURE_KEY = "U0VDUkVU"
LOGIN = "https://login.microsoftonline.com/tenant/oauth2/token"
CLIENT = {
    f"fs.azure.account.oauth.provider.type.{ACCOUNT}": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
    f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "client",
    f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": "SECRET",
    f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}": LOGIN,
}

Found = Callable[..., dict[str, Value]]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if re.match("AWS_|AZURE_|GOOGLE_|HADOOP_", name):
            monkeypatch.delenv(name)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """The options of a storage at a URL, with these settings of Hadoop."""

    def of(url: str, values: dict[str, str], given: dict[str, Value] | None = None) -> dict[str, Value]:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
        options = open_storage(url, StorageOptions(given) if given else None)._options
        return {} if options is None else {**options.config, **options.client}

    return of


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        (KEYS, {"access_key_id": "key", "secret_access_key": "SECRET"}),
        (
            KEYS | {"fs.s3a.session.token": "TOKEN"},
            {"access_key_id": "key", "secret_access_key": "SECRET", "session_token": "TOKEN"},
        ),
        ({"fs.s3a.access.key": "key"}, {}),
        ({"fs.s3a.session.token": "TOKEN"}, {}),
        (
            KEYS | {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"skip_signature": True},
        ),
        ({"fs.s3a.endpoint": "https://minio:9000"}, {"endpoint": "https://minio:9000"}),
        ({"fs.s3a.endpoint": "http://minio:9000"}, {"endpoint": "http://minio:9000", "allow_http": True}),
        ({"fs.s3a.endpoint": "minio:9000"}, {"endpoint": "https://minio:9000"}),
        (
            {"fs.s3a.endpoint": " minio:9000\n", "fs.s3a.connection.ssl.enabled": "False"},
            {"endpoint": "http://minio:9000", "allow_http": True},
        ),
        (
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.path.style.access": "false"},
            {"endpoint": "https://lake.minio:9000", "virtual_hosted_style_request": True},
        ),
        ({"fs.s3a.endpoint": "minio:9000", "fs.s3a.path.style.access": "true"}, {"endpoint": "https://minio:9000"}),
        (
            {"fs.s3a.endpoint": "10.0.0.1:9000", "fs.s3a.path.style.access": "false"},
            {"endpoint": "https://10.0.0.1:9000"},
        ),
        ({"fs.s3a.path.style.access": "false"}, {"virtual_hosted_style_request": True}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        ({"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint": "https://s3-eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint": "s3.cn-north-1.amazonaws.com.cn"}, {"region": "cn-north-1"}),
        (
            {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com", "fs.s3a.endpoint.region": "eu-west-2"},
            {"region": "eu-west-2"},
        ),
        # One bucket has settings of its own, and another one others.
        (
            KEYS | {"fs.s3a.bucket.lake.endpoint.region": "here", "fs.s3a.endpoint.region": "there"},
            {"access_key_id": "key", "secret_access_key": "SECRET", "region": "here"},
        ),
        (
            KEYS | {"fs.s3a.bucket.lakes.access.key": "other", "fs.s3a.bucket.lake.secret.key": "LAKES"},
            {"access_key_id": "key", "secret_access_key": "LAKES"},
        ),
    ],
)
def test_s3(scheme: str, values: dict[str, str], expected: dict[str, Value], found: Found) -> None:
    assert found(f"{scheme}://lake/rides", values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        ({f"fs.azure.account.key.{ACCOUNT}": AZURE_KEY}, {"account_key": AZURE_KEY}),
        ({"fs.azure.account.key.account.blob.core.windows.net": AZURE_KEY}, {"account_key": AZURE_KEY}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": AZURE_KEY}, {}),
        ({f"fs.azure.sas.fixed.token.{ACCOUNT}": "sv=1&sig=SECRET"}, {"sas_key": "sv=1&sig=SECRET"}),
        (CLIENT, {"client_id": "client", "client_secret": "SECRET", "tenant_id": "tenant"}),
        (CLIENT | {f"fs.azure.account.key.{ACCOUNT}": AZURE_KEY}, {"account_key": AZURE_KEY}),
    ],
)
@pytest.mark.parametrize(
    "url", [f"abfs://lake@{ACCOUNT}/t", "wasbs://lake@account.blob.core.windows.net/t", "az://lake/t"]
)
def test_azure(
    url: str, values: dict[str, str], expected: dict[str, Value], found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    account: dict[str, Value] = {"account_name": "account"} if "@" in url else {}
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other" if account else "account")
    assert found(url, values) == expected | account


def test_gcs(found: Found, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text('{"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": true}')
    for name in ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"):
        assert found("gs://lake/t", {name: str(key)}) == {"service_account": str(key)}


OF_ENVIRONMENT: list[tuple[str, str, dict[str, Value]]] = [
    ("AWS_ENDPOINT", "http://other:1", {"region": "here", "access_key_id": "key", "secret_access_key": "SECRET"}),
    ("AWS_ENDPOINT_URL_S3", "http://o:1", {"region": "here", "access_key_id": "key", "secret_access_key": "SECRET"}),
    ("AWS_ACCESS_KEY_ID", "mine", {"region": "here", "endpoint": "http://minio:9000", "allow_http": True}),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "/x", {"region": "here", "endpoint": "http://minio:9000", "allow_http": True}),
]


@pytest.mark.parametrize(("name", "value", "expected"), OF_ENVIRONMENT)
def test_the_stores_own_variables_win(
    name: str, value: str, expected: dict[str, Value], found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In groups: the key of one is never used with the secret, or the endpoint with the TLS, of the other."""
    values = KEYS | {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.endpoint.region": "here"}
    everything = found("s3a://lake/t", values)
    assert len(everything) == 5
    monkeypatch.setenv(name, value)
    assert found("s3a://lake/t", values) == expected
    monkeypatch.delenv(name)
    if not name.endswith("_S3"):
        # That is no option of obstore's, though it reads the variable.
        given: dict[str, Value] = {name.lower(): value}
        if name == "AWS_ACCESS_KEY_ID":
            given["aws_secret_access_key"] = "OTHER"
        assert found("s3a://lake/t", values, given) == expected | given
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY)
    of_azure = {f"fs.azure.account.key.{ACCOUNT}": "QUJDRA=="}
    assert found(f"abfs://lake@{ACCOUNT}/t", of_azure) == {"account_name": "account"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/x")
    assert found("gs://lake/t", {"fs.gs.auth.service.account.json.keyfile": "/y"}) == {}


def test_values_name_others(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_TEST", "SECRET")
    values = {
        "host": "minio",
        "fs.s3a.endpoint": "https://${host}:${env.NOBODY_HAS_IT:-9000}",
        "fs.s3a.access.key": "${fs.s3a.access.key}${nothing}",
        "fs.s3a.secret.key": "${env.OF_TEST}",
    }
    told = found("s3://lake/t", values)
    assert told["endpoint"] == "https://minio:9000" and told["secret_access_key"] == "SECRET"


def test_included_files(found: Found, tmp_path: Path) -> None:
    assert found("s3://lake/t", {}) == {}
    settings_folder(tmp_path / "more", {"fs.s3a.endpoint.region": "here"})
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more/core-site.xml"/>'
    (tmp_path / "core-site.xml").write_text(f"<configuration>{include}</configuration>")
    assert open_storage("s3://lake/t")._options == StorageOptions({"region": "here"})
    (tmp_path / "core-site.xml").write_text(f"<configuration>{include.replace('more/', '')}</configuration>")
    with pytest.raises(ConfigError, match="a chain of more than 20 includes"):
        open_storage("s3://lake/t")


def test_hadoop_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_folder(tmp_path / "etc/hadoop", {"fs.s3a.endpoint.region": "here"})
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    assert open_storage("s3://lake/t")._options == StorageOptions({"region": "here"})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "nothing"))
    assert open_storage("s3://lake/t")._options is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<configuration><property><name>SECRET", "core-site.xml is no XML \\(line 1, column"),
        (
            "<configuration><property><name>fs.s3a.endpoint</name><value>http://[SECRET</value></property></configuration>",
            "fs.s3a.endpoint of Hadoop's settings is no endpoint",
        ),
        (
            "<configuration><property><name>fs.s3a.endpoint</name><value>ftp://SECRET</value></property></configuration>",
            "fs.s3a.endpoint of Hadoop's settings is no endpoint",
        ),
    ],
)
def test_wrong_files(text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "core-site.xml").write_text(text)
    with pytest.raises(ConfigError, match=sentence) as caught:
        open_storage("s3://lake/t").read("x")
    assert "SECRET" not in f"{caught.value} {caught.value.hint}"


def test_tasks_get_them(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors need no settings of their own: a storage takes those with it that it was opened with."""
    values = settings_at(servers.bucket("moto").endpoint)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
    name = f"s3a://lake/{tmp_path.name}"
    storage = open_storage(name)
    storage.put("file", b"content")
    settings_folder(tmp_path, {"fs.s3a.endpoint": "http://127.0.0.1:1"})
    there = pickle.loads(pickle.dumps(storage))
    assert there.read("file") == storage.read("file") == b"content"
    assert there.identity == storage.identity != open_storage(name).identity
    for text in (repr(storage), repr(vars(there)), str(there.identity)):
        assert values["fs.s3a.secret.key"] not in text


def test_an_endpoint_of_the_environment(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its TLS, and with the keys of Hadoop, or of a caller."""
    values = settings_at(servers.bucket("moto").endpoint)
    monkeypatch.setenv("AWS_ENDPOINT", values.pop("fs.s3a.endpoint"))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    given = StorageOptions({"access_key_id": "key", "secret_access_key": "other", "region": "us-east-1"})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
    for number, options in enumerate((None, given)):
        open_storage(f"s3a://lake/{tmp_path.name}", options).create(str(number), b"")


def test_a_bucket_of_locks_has_settings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"fs.s3a.bucket.lake.endpoint.region": "here", "fs.s3a.bucket.locks.endpoint.region": "there"}
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
    storage = open_storage("s3://lake/t", StorageOptions({"timeout": "9s"}))
    for name, region in (("locks", "there"), ("others", None)):
        found = storage.elsewhere(f"s3a://{name}/x")._options
        assert found is not None and (found.get("region"), found.get("timeout")) == (region, "9s")


def test_a_table_by_them(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = settings_at(servers.bucket("moto").endpoint)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
    url = f"s3a://lake/{tmp_path.name}"
    table = hudi_services.create(url, record_key="id", engine="local")
    table.upsert(pa.table({"id": ["a", "b"], "value": [1, 2]}))
    assert table.validate().ok and len(hudi_services.open(url).timeline()) > 0


@pytest.mark.parametrize("server", [pytest.param("azurite", marks=deep_on("azurite"))])
def test_azure_by_all_its_names(server: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = servers.bucket(server)
    account, key = (str(bucket.options.get(name)) for name in ("account_name", "account_key"))
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", bucket.endpoint)
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    values = {f"fs.azure.account.key.{account}.dfs.core.windows.net": key}
    monkeypatch.setenv("HADOOP_CONF_DIR", str(settings_folder(tmp_path, values)))
    bucket.open(tmp_path.name).put("file", b"content")
    for scheme, kind in (("abfs", "dfs"), ("abfss", "dfs"), ("wasb", "blob"), ("wasbs", "blob")):
        storage = open_storage(f"{scheme}://lake@{account}.{kind}.core.windows.net/{tmp_path.name}")
        assert pickle.loads(pickle.dumps(storage)).read("file") == b"content"
        storage.create(scheme, b"")
    assert [file.path for file in bucket.open(tmp_path.name).list_tree("")] == [
        "abfs",
        "abfss",
        "file",
        "wasb",
        "wasbs",
    ]


def test_other_clouds_of_azure(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "abfss://lake@account.dfs.core.chinacloudapi.cn/t"
    known: dict[str, Value] = {"account_name": "account"}
    assert found(url, {}) == known | {"endpoint": "https://account.blob.core.chinacloudapi.cn"}
    key = {"fs.azure.account.key.account.dfs.core.chinacloudapi.cn": AZURE_KEY}
    assert found(url, key)["account_key"] == AZURE_KEY
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "https://other")
    assert found(url, {}) == known
