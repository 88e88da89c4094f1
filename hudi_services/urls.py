"""Checks what a URL of a store holds, and removes secrets from URLs that are shown.

A URL ends up in plans on the timeline, in reports and on terminals. So it names a place and nothing else: credentials
come from the environment, or from the role of the machine.
"""

import os
import re
from urllib.parse import unquote, urlsplit

from .errors import ConfigError
from .schemes import HOST_AND_PORT, SCHEMES

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_WHOLE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://).*", re.DOTALL)
_LIKE_A_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
"""A scheme of two characters or more before a path, such as `s3:/`: no folder has such a name."""
_SCHEME_AND_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):.*@", re.DOTALL)
_LONGEST_SCHEME = 30
_SCHEME_AT_END = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*$")
_UP_TO_BLANK = re.compile(r"[^\s'\"<>]*")
_HOST_AND_PORT = re.compile(HOST_AND_PORT)
_PORT = "a port"
_LOCAL_HOSTS = ("", "localhost")


def scheme_of(url: str) -> str:
    """The scheme of a URL in lower case; "" for a path."""
    match = _SCHEME.match(url)
    if match:
        return match[1].lower()
    return "file" if url[:5].lower() == "file:" else ""


def local_path(url: str) -> str | None:
    """The path that a path or a file: URL names; None for the URL of a store. Raises ConfigError as `check_url`."""
    scheme = scheme_of(url)
    if not scheme:
        return url
    if scheme != "file":
        return None
    check_url(url)
    return unquote(urlsplit(url).path)


def folder_name(url: str) -> str:
    """The name of the folder that a path or the URL of a store names; "" for a bucket alone, and for /."""
    scheme = scheme_of(url)
    path = url[len(scheme) + len("://") :].partition("/")[2] if scheme else url
    name = path.rstrip("/").rpartition("/")[2]
    # The store reads its URL in this way, too.
    return unquote(name) if scheme else name


def absolute_path(path: str) -> str:
    """`path` as an absolute path. Raises ConfigError for a relative path when the working directory was deleted."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise ConfigError(
            f"the path {path} is relative, and the working directory does not exist any more",
            hint="give an absolute path, or change to a folder that exists",
        ) from None


def is_writable_file(path: str) -> bool:
    """Whether a local file can be written: its folder is there, and it may be replaced. Raises ConfigError as
    `absolute_path`."""
    folder = os.path.dirname(absolute_path(path))
    replaceable = not os.path.exists(path) or os.access(path, os.W_OK)
    return os.access(folder, os.W_OK) and replaceable and not os.path.isdir(path)


def check_url(url: str, what: str = "the URL") -> None:
    """Raise ConfigError for a URL that holds more than a place, which the message does not show, and for a file: URL
    of another host. `what` names the URL in messages."""
    scheme = scheme_of(url)
    if not scheme:
        _check_path(url, what)
        return
    found = _more_than_a_place(url, scheme)
    if found == _PORT:
        raise ConfigError(
            f"{what} ({scheme}:) holds a port, and a bucket has none",
            hint="leave it out of the URL: the endpoint of the store comes from the environment, as "
            "AWS_ENDPOINT=http://minio:9000, or from storage_options",
        )
    if found:
        raise ConfigError(
            f"{what} ({scheme}:) holds {found}, which would end up in plans and reports",
            hint="leave it out of the URL: credentials come from the environment, or from the role of the machine",
        )
    if scheme == "file" and urlsplit(url).netloc.lower() not in _LOCAL_HOSTS:
        raise ConfigError(
            f"{what} {url} names the host {urlsplit(url).netloc}, and only files of this machine can be reached so",
            hint=f"write file:///{urlsplit(url).netloc}{urlsplit(url).path}, if that is what you mean",
        )


def _check_path(path: str, what: str) -> None:
    """Raise ConfigError for text that is a path only because it is not a proper URL: messages show paths, not URLs."""
    stripped = path.strip()
    if stripped != path and (scheme_of(stripped) or _is_like_a_url(stripped)):
        raise ConfigError(f"{what} begins or ends with a blank, and is a URL otherwise", hint="leave the blanks out")
    if _is_like_a_url(path) or without_secrets(path) != path:
        raise ConfigError(
            f"{what} is neither a path nor a URL: it begins like one, or holds one",
            hint="write scheme://bucket/path for a store, and ./ before the path of a folder with such a name",
        )


def _is_like_a_url(path: str) -> bool:
    return bool(_LIKE_A_SCHEME.match(path) or _SCHEME_AND_USER.match(path))


def without_secrets(text: str) -> str:
    """A value as it may be shown: a URL in it that holds more than a place is cut down to its scheme.

    All text after the scheme counts as part of the URL; for sentences see `message_without_secrets`.
    """
    if not scheme_of(text.strip()) and _is_like_a_url(text.strip()) and "://" not in text:
        return f"{text.partition(':')[0]}:…"
    return _WHOLE.sub(
        lambda match: f"{match[1]}…" if _more_than_a_place(match[0], scheme_of(match[0])) else match[0], text
    )


def message_without_secrets(message: str) -> str:
    """A sentence as it may be shown: without users, passwords and queries of URLs that other programs wrote there.

    This is the last resort. Places stay as they are, and so do endpoints with a port.
    """
    return "\n".join(_line_without_secrets(line) for line in message.split("\n"))


def _line_without_secrets(line: str) -> str:
    """One line as it may be shown; a URL may extend to the next URL, because passwords may have blanks."""
    before, *rests = line.split("://")
    if not rests:
        return _with_one_slash(line)
    shown = [_with_one_slash(before)]
    for rest in rests:
        found = _SCHEME_AT_END.search(before[-_LONGEST_SCHEME:])
        shown.append(_rest_of_url(found[0].lower(), rest) if found else rest)
        before = rest
    return "://".join(shown)


def _with_one_slash(text: str) -> str:
    """`text` as it may be shown, without the user of a mistyped URL such as s3:/key:secret@bucket."""
    before, slash, rest = text.partition(":/")
    scheme = _SCHEME_AT_END.search(before[-_LONGEST_SCHEME:])
    if scheme is None or scheme[0].lower() == "file" or "@" not in rest.split("/", 1)[0]:
        return text
    return f"{before}{slash}{_after_user(rest)}"


def _rest_of_url(scheme: str, rest: str) -> str:
    """The part that may be shown of `rest`, which follows `://` on the line."""
    token = _match(_UP_TO_BLANK, rest)
    before, at, _ = re.split(r"[/\\]", rest, maxsplit=1)[0].rpartition("@")
    is_container = _is_place(scheme, f"{before}@") and not re.search(r"\s", before)
    host = re.split(r"[/\\?#]", token, maxsplit=1)[0].rpartition("@")[2].rstrip(".,:;)")
    path = token.partition("/")[2]
    has_password = not _HOST_AND_PORT.fullmatch(host) or (":" in host and "@" in path)
    if (at and not is_container) or has_password:
        return _after_user(rest)
    place, sign, more = token.partition("?")
    if "=" not in more:
        place, sign, more = token.partition("#")
        # Partitions may have a # in their names; a fragment is at the end.
        if not more or "/" in more:
            return rest
    return f"{place}{sign}…{rest[len(token) :]}"


def _after_user(rest: str) -> str:
    """`…` and the text after the URL, whose user ends at the last @: a password may have slashes and blanks."""
    after = rest.rpartition("@")[2]
    return f"…{after[len(_match(_UP_TO_BLANK, after)) :]}"


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return found[0] if found else ""


def _more_than_a_place(url: str, scheme: str) -> str:
    """What the URL holds in addition to a place, in words; "" for nothing."""
    if "?" in url:
        return "a query"
    if "#" in url:
        return "a fragment"
    # A password may have a slash, which ends the authority, and digits before it.
    authority = re.split(r"[/\\]", url.partition("://")[2], maxsplit=1)[0]
    has_port = ":" in authority and _HOST_AND_PORT.fullmatch(authority) is not None
    if has_port and "@" in url:
        return "a port and an at sign, as a password may"
    if _is_place(scheme, authority):
        return ""
    return _PORT if has_port else "a user name or password"


def _is_place(scheme: str, authority: str) -> bool:
    """Whether what is between `scheme://` and the path names a place and nothing else."""
    return re.fullmatch(SCHEMES[scheme].authority if scheme in SCHEMES else HOST_AND_PORT, authority) is not None
