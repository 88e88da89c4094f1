"""What a URL of a store may hold, and how one is shown.

Whatever stands in a URL ends up in plans on the timeline, in reports and on terminals. So it names a place and nothing
else: credentials come from where the store's own tools look for them.
"""

import os
import re
from urllib.parse import unquote, urlsplit

from .errors import ConfigError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_IN_TEXT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://).*", re.DOTALL)
_CONTAINER_AT_ACCOUNT = {"abfs", "abfss", "wasb", "wasbs"}
"""container@account.dfs.core.windows.net: the part before the @ is no user."""
_LOCAL_HOSTS = ("", "localhost")


def scheme_of(url: str) -> str:
    """In lower case; "" for a path."""
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


def absolute_path(path: str) -> str:
    """Raises ConfigError for a relative one when the working directory was deleted."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise ConfigError(
            f"the path {path} is relative, and the working directory does not exist any more",
            hint="give an absolute path, or change to a folder that exists",
        ) from None


def check_url(url: str, what: str = "the URL") -> None:
    """Raise ConfigError for one that holds more than a place; the sentence names `what` it is and not what it holds."""
    scheme = scheme_of(url)
    if not scheme:
        return
    found = _more_than_a_place(url, scheme)
    if found:
        raise ConfigError(
            f"{what} ({scheme}:) holds {found}, which would end up in plans and reports",
            hint="leave it out of the URL: credentials come from the environment, a profile or the instance's role",
        )
    if scheme == "file" and urlsplit(url).netloc.lower() not in _LOCAL_HOSTS:
        raise ConfigError(
            f"{what} {url} names the host {urlsplit(url).netloc}, and only files of this machine can be reached so",
            hint=f"write file:///{urlsplit(url).netloc}{urlsplit(url).path}, if that is what you mean",
        )


def without_secrets(text: str) -> str:
    """`text` as it may be shown: of each URL in it that holds more than a place, only the scheme is left."""
    return _IN_TEXT.sub(
        lambda match: f"{match[1]}…" if _more_than_a_place(match[0], scheme_of(match[0])) else match[0], text
    )


def _more_than_a_place(url: str, scheme: str) -> str:
    """What the URL holds besides, for people; "" when there is no such thing."""
    if "?" in url:
        return "a query"
    if "#" in url:
        return "a fragment"
    authority = re.split(r"[/\\]", url.partition("://")[2], maxsplit=1)[0]
    before, at, _ = authority.rpartition("@")
    if at and (scheme not in _CONTAINER_AT_ACCOUNT or ":" in before or "@" in before):
        return "a user name or password"
    # A password may have a slash, which ends the authority; and no bucket has a port.
    if scheme != "file" and ":" in authority:
        return "a user name or password"
    return ""
