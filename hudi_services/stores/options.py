"""The options of a store in addition to its URL (endpoint, region, credentials), whose secrets are never shown."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..errors import ConfigError

Value: TypeAlias = str | bool | int

_PREFIXES = ("aws_", "azure_", "google_")
CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_max_frame_size",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
"""Options of the HTTP client: obstore takes them separately from the options of the store."""
_PLACES = frozenset({"bucket", "bucket_name", "container", "container_name"})
_SHOWN_ENDINGS = ("endpoint", "endpoint_url", "endpoint_url_s3", "region", "account_name", "timeout")
_SHORTEST_SECRET = 4


class StorageOptions:
    """Immutable; equal when the options are. Pickles with its secrets, because executors need the credentials, too."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        """Raises ConfigError, which shows no value, for a value of a wrong type or an option that names a place."""
        for name, value in values.items():
            if not isinstance(value, str | bool | int):
                raise ConfigError(
                    f"storage_options: the value of {name} is of the type {type(value).__name__}",
                    hint="give a text, a whole number, or True or False",
                )
            if _bare(name) in _PLACES:
                raise ConfigError(
                    f"storage_options: {name} names a place, and the URL does that", hint=f"leave {name} out"
                )
        self._values = tuple(sorted(values.items()))

    @property
    def config(self) -> dict[str, Value]:
        """The options of the store itself."""
        return {name: value for name, value in self._values if _bare(name) not in CLIENT_OPTIONS}

    @property
    def client(self) -> dict[str, Value]:
        """The options of the HTTP client, by obstore's names."""
        return {_bare(name): value for name, value in self._values if _bare(name) in CLIENT_OPTIONS}

    def get(self, name: str) -> Value | None:
        """The value of an option, by its name without that of the cloud; None when it is not given."""
        return next((value for given, value in self._values if _bare(given) == name), None)

    def over(self, lower: "StorageOptions") -> "StorageOptions":
        """These options, and those of `lower` that are not among them."""
        names = {_bare(name) for name, _ in self._values}
        return StorageOptions(dict([*(one for one in lower._values if _bare(one[0]) not in names), *self._values]))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._values)

    def hide(self, text: str) -> str:
        """`text` without the values that may be secret."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, "…")
        return text

    def _secrets(self) -> Iterable[str]:
        for name, value in self._values:
            if isinstance(value, str) and len(value) >= _SHORTEST_SECRET and not _bare(name).endswith(_SHOWN_ENDINGS):
                yield value

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(f'{name}=…' for name, _ in self._values)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageOptions) and other._values == self._values

    def __hash__(self) -> int:
        return hash(self._values)


def _bare(name: str) -> str:
    """The name of an option in lower case, without the name of the cloud."""
    lowered = name.lower()
    prefix = next((one for one in _PREFIXES if lowered.startswith(one)), "")
    return lowered.removeprefix(prefix)
