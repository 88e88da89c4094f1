"""What Hadoop's settings say of an object store: its endpoint, and the credentials for it.

They are in core-site.xml, in the folder that HADOOP_CONF_DIR names, else HADOOP_HOME/etc/hadoop. The names are those of
Hadoop's clients: fs.s3a (also for one bucket, as fs.s3a.bucket.<bucket>.endpoint), fs.azure and fs.gs. A value may name
others, as ${fs.s3a.endpoint} and ${env.HOME}. Credential files (hadoop.security.credential.provider.path) are Java's
own, and not read. Sources: Configuration of Hadoop, and the pages of hadoop-aws and hadoop-azure.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from xml.etree import ElementTree

from ..errors import ConfigError
from .options import StorageOptions, Value

_FILE = "core-site.xml"
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MOST_SUBSTITUTIONS = 20
_ENVIRONMENT = re.compile(r"env\.([^:-]+)(?::?-(.*))?")
_DEEPEST = 20
_OWN_ENDPOINT = re.compile(r"s3[.-]?(?:dualstack\.)?([a-z0-9-]*)\.amazonaws\.com(?:\.cn)?")
_NUMBERS = re.compile(r"[0-9.]+|.*:.*|localhost")
"""Hosts that have no hosts of buckets below them."""
_CLIENT_CREDENTIALS = "ClientCredsTokenProvider"
_TENANT = re.compile(r"https://[^/]+/([^/]+)/oauth2/")


@dataclass(frozen=True, slots=True)
class _Group:
    """Options that belong together: where the store's own environment, or a caller, gives one of `own`, Hadoop's do not
    count. The names are obstore's, without that of the cloud."""

    own: tuple[str, ...]
    of: Callable[["_Settings", str], Mapping[str, Value | None]]
    """The options by Hadoop's settings, for a place; None for one that they do not name."""


class _Settings:
    """The values of the files by name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get(self, *names: str) -> str | None:
        """The value of the first name that has one."""
        found = (self._resolved(name) for name in names)
        return next((value for value in found if value), None)

    def s3a(self, bucket: str, name: str) -> str | None:
        return self.get(f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}")

    def s3a_flag(self, bucket: str, name: str) -> bool | None:
        """True or False where the value is one; None without it."""
        return {"true": True, "false": False}.get((self.s3a(bucket, name) or "").lower())

    def _resolved(self, name: str) -> str | None:
        value = self._values.get(name)
        for _ in range(_MOST_SUBSTITUTIONS if value else 0):
            assert value is not None
            found = _VARIABLE.search(value)
            if found is None:
                break
            other = self._variable(found[1])
            if other is None:
                # As for Hadoop, the text stays.
                break
            value = value.replace(found[0], other)
        return value.strip() if value else None

    def _variable(self, name: str) -> str | None:
        of_environment = _ENVIRONMENT.fullmatch(name)
        if of_environment is None:
            return self._values.get(name)
        return os.environ.get(of_environment[1]) or of_environment[2]


def hadoop_options(store: str, place: str, given: StorageOptions) -> StorageOptions:
    """The options by Hadoop's settings of a place in a store (`s3`, `gs`, `az`): of a bucket, or of an account of
    Azure, as `account.core.windows.net`.

    What `given` says, or a variable of the store's own in the environment, is not among them.

    Raises ConfigError, which shows no value, for a file that cannot be read.
    """
    folder = _folder()
    if folder is None:
        return StorageOptions({})
    settings = _Settings(_read(folder / _FILE))
    found: dict[str, Value] = {}
    for group in _GROUPS.get(store, ()):
        if not any(_is_given(store, name, given) for name in group.own):
            found.update((name, value) for name, value in group.of(settings, place).items() if value is not None)
    return StorageOptions(found)


def _folder() -> Path | None:
    named, home = os.environ.get("HADOOP_CONF_DIR"), os.environ.get("HADOOP_HOME")
    if named:
        return Path(named)
    return Path(home, "etc/hadoop") if home else None


def _read(file: Path, outer: tuple[Path, ...] = ()) -> dict[str, str]:
    """The values in a file, and in those that it includes; nothing where there is no file."""
    if len(outer) >= _DEEPEST:
        raise ConfigError(f"{outer[0]} leads to a chain of more than {_DEEPEST} includes")
    try:
        root = ElementTree.fromstring(file.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except ElementTree.ParseError as error:
        line, column = error.position
        raise ConfigError(f"{file} is no XML (line {line}, column {column + 1})") from None
    values: dict[str, str] = {}
    for child in root:
        if child.tag.endswith("}include"):
            values |= _read(file.parent / child.get("href", ""), (*outer, file))
        elif child.tag == "property":
            name = (child.findtext("name") or "").strip()
            values[name] = child.findtext("value") or ""
    return values


def _is_given(store: str, name: str, given: StorageOptions) -> bool:
    return given.get(name) is not None or any(os.environ.get(f"{prefix}{name}".upper()) for prefix in _PREFIXES[store])


def _s3_endpoint(settings: _Settings, bucket: str) -> dict[str, Value | None]:
    endpoint = settings.s3a(bucket, "endpoint")
    is_hosted = settings.s3a_flag(bucket, "path.style.access") is False
    if endpoint is None or _own_region(endpoint) is not None:
        return {"virtual_hosted_style_request": True if is_hosted else None}
    if "://" not in endpoint:
        is_plain = settings.s3a_flag(bucket, "connection.ssl.enabled") is False
        endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
    url = _parsed(endpoint)
    is_hosted = is_hosted and not _NUMBERS.fullmatch(url.hostname or "")
    if is_hosted:
        endpoint = f"{url.scheme}://{bucket}.{url.netloc}{url.path}"
    return {
        "endpoint": endpoint,
        "allow_http": True if url.scheme == "http" else None,
        "virtual_hosted_style_request": True if is_hosted else None,
    }


def _parsed(endpoint: str) -> SplitResult:
    try:
        url = urlsplit(endpoint)
        is_endpoint = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        is_endpoint = False
    if not is_endpoint:
        raise ConfigError(
            "fs.s3a.endpoint of Hadoop's settings is no endpoint",
            hint="write host:port, or http://host:port, in core-site.xml, or set AWS_ENDPOINT",
        )
    return url


def _own_region(endpoint: str) -> str | None:
    """The region that an endpoint of Amazon's names, "" for one without; None for an endpoint of somebody else."""
    found = _OWN_ENDPOINT.fullmatch(endpoint.partition("://")[2] or endpoint)
    return found[1] if found else None


def _s3_region(settings: _Settings, bucket: str) -> dict[str, Value | None]:
    region = settings.s3a(bucket, "endpoint.region")
    return {"region": region or _own_region(settings.s3a(bucket, "endpoint") or "") or None}


def _s3_credentials(settings: _Settings, bucket: str) -> dict[str, Value | None]:
    provider = settings.s3a(bucket, "aws.credentials.provider") or ""
    if provider.endswith("AnonymousAWSCredentialsProvider"):
        return {"skip_signature": True}
    key, secret = settings.s3a(bucket, "access.key"), settings.s3a(bucket, "secret.key")
    if not (key and secret):
        return {}
    return {"access_key_id": key, "secret_access_key": secret, "session_token": settings.s3a(bucket, "session.token")}


def _azure_credentials(settings: _Settings, place: str) -> dict[str, Value | None]:
    account, _, domain = place.partition(".")

    def of_account(name: str) -> str | None:
        hosts = (f"{account}.{kind}.{domain}" for kind in ("dfs", "blob"))
        return settings.get(*(f"fs.azure.{name}.{one}" for one in (*hosts, account)), f"fs.azure.{name}")

    key = of_account("account.key")
    if key:
        return {"account_key": key}
    tenant = _TENANT.match(of_account("account.oauth2.client.endpoint") or "")
    if not (of_account("account.oauth.provider.type") or "").endswith(_CLIENT_CREDENTIALS) or tenant is None:
        return {"sas_key": of_account("sas.fixed.token")}
    return {
        "client_id": of_account("account.oauth2.client.id"),
        "client_secret": of_account("account.oauth2.client.secret"),
        "tenant_id": tenant[1],
    }


def _gcs_credentials(settings: _Settings, _: str) -> dict[str, Value | None]:
    names = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
    return {"service_account": settings.get(*names)}


_S3 = (
    _Group(("endpoint", "endpoint_url", "endpoint_url_s3"), _s3_endpoint),
    _Group(("region", "default_region"), _s3_region),
    _Group(
        (
            "access_key_id",
            "secret_access_key",
            "skip_signature",
            "web_identity_token_file",
            "container_credentials_relative_uri",
            "container_credentials_full_uri",
        ),
        _s3_credentials,
    ),
)
_AZURE = (
    _Group(
        (
            "account_key",
            "access_key",
            "sas_key",
            "sas_token",
            "client_id",
            "client_secret",
            "token",
            "federated_token_file",
            "skip_signature",
            "use_azure_cli",
            "msi_endpoint",
        ),
        _azure_credentials,
    ),
)
_GCS = (
    _Group(
        ("service_account", "service_account_path", "service_account_key", "application_credentials", "skip_signature"),
        _gcs_credentials,
    ),
)
_GROUPS: dict[str, tuple[_Group, ...]] = {"s3": _S3, "az": _AZURE, "gs": _GCS}
_PREFIXES = {"s3": ("aws_",), "az": ("azure_storage_", "azure_"), "gs": ("google_",)}
