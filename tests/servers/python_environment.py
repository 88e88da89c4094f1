"""Virtual environments with what `hudi_services` imports, and without it: the Pythons of the machines of a cluster."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import requires
from pathlib import Path

from .tools import kept, run

ROOT = Path(__file__).resolve().parents[2]
SPARK_3, SPARK_4 = "3.5.9", "4.3.0"
"""The releases of Spark of the tests on clusters."""
_STORES = ["hdfs-native>=0.14.7"]


def environment(into: Path) -> Path:
    """A virtual environment at `into` that has our requirements; its Python. It is a copy of one that is kept."""
    required = [one for one in requires("hudi-services") or [] if "extra ==" not in one] + _STORES
    name = hashlib.sha256(f"{sys.version} {sys.prefix} {required}".encode()).hexdigest()[:16]

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *required])

    shutil.copytree(kept(f"python-{name}", install), into, symlinks=True, copy_function=_linked)
    return into / "bin" / "python"


def _linked(source: str, target: str) -> None:
    """A link where the file system has both, for nobody changes the files; else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def install(python: Path, *what: str) -> None:
    """Install into the environment of this Python."""
    run([str(python), "-m", "pip", "install", "--quiet", *what])


def spark_home(version: str) -> Path:
    """The home of this release of Spark, which its Python package is; that of the tests' own, when it is that."""
    import pyspark

    if pyspark.__version__ == version:
        return Path(pyspark.__path__[0])

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), f"pyspark=={version}"])

    return kept(f"pyspark-{version}", install) / "pyspark"


def python_of_tests(version: str) -> Path:
    """A Python that has what the tests have, but for this release of Spark."""
    ours = sysconfig.get_path("purelib")
    name = hashlib.sha256(f"{sys.version} {ours}".encode()).hexdigest()[:16]

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", f"pyspark=={version}"])
        (packages,) = folder.glob("lib/python*/site-packages")
        # Its own packages come first.
        (packages / "of_the_tests.pth").write_text(f"import site; site.addsitedir({ours!r})\n")

    return kept(f"tests-{version}-{name}", install) / "bin" / "python"


def wheel(into: Path) -> Path:
    """The wheel of this repository."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(into),
            str(ROOT),
        ],
        check=True,
    )
    (found,) = into.glob("hudi_services-*.whl")
    return found


def packed(folder: Path) -> tuple[Path, Path]:
    """An environment that has this package, and an archive of it by venv-pack, both in `folder`; Python and archive."""
    python, archive = environment(folder / "environment"), folder / "environment.tgz"
    install(python, str(wheel(folder)), "venv-pack")
    run([str(python), "-m", "venv_pack", "-p", str(folder / "environment"), "-o", str(archive)])
    return python, archive
