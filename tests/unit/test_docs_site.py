"""The site of the pages, as `make docs` builds it: from a copy of the repository, in an environment of its own."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hudi_services

from ..servers.tools import kept, run
from .test_docs import anchors

ROOT = Path(__file__).resolve().parents[2]
READ = ("docs", "conf", "findings", "hudi_services", "scripts")
pytestmark = pytest.mark.deep


def copy(folder: Path) -> Path:
    """What the site is made of."""
    for name in READ:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (
        *ROOT.glob("*.md"),
        *(ROOT / name for name in ("LICENSE", "Makefile", "mkdocs.yml", "pyproject.toml")),
    ):
        shutil.copy2(file, folder)
    return folder


def make_docs(repository: Path) -> "subprocess.CompletedProcess[str]":
    """Build it with what the extra `docs` brings, which is installed once for each state of pyproject.toml."""
    required = (ROOT / "pyproject.toml").read_bytes()
    name = hashlib.sha256(f"{sys.version} {sys.prefix}".encode() + required).hexdigest()[:16]

    def install(folder: Path) -> None:
        # The environment moves when it is complete: make then finds it as new as pyproject.toml.
        run(["make", "-C", str(repository), f"PYTHON={sys.executable}", f"VENV={folder}", f"{folder}/.installed-docs"])

    line = ["make", "-C", str(repository), f"VENV={kept(f'docs-{name}', install)}", "docs"]
    return subprocess.run(line, capture_output=True, text=True)


class Loaded(HTMLParser):
    """What a browser loads with a page, without a click."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        urls = [value for name, value in attrs if value and (name == "src" or (name == "href" and tag == "link"))]
        self.urls += urls


def test_the_site(tmp_path: Path) -> None:
    """Strictly built, it has every page, every public name, a search, and nothing from another host."""
    repository = copy(tmp_path)
    done = make_docs(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    site = repository / "build" / "site"
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((repository / "docs").rglob("*.md")))
    assert (site / "repository" / "findings" / "hudi_clustering_forgets_renames.sh.html").exists()
    for source in (repository / "docs").rglob("*.md"):
        page = source.with_name("index.html") if source.name == "README.md" else source.with_suffix(".html")
        ids = set(re.findall(r' id="([^"]+)"', (site / page.relative_to(repository / "docs")).read_text("utf-8")))
        headings = anchors(source.read_text(encoding="utf-8").partition("\n")[2])
        assert headings <= ids, f"{source} has other anchors on GitHub"
    loaded = {url for page in pages for url in Loaded(page.read_text(encoding="utf-8")).urls}
    assert {url for url in loaded if re.match(r"(\w+:)?//", url)} == set()
    reference = (site / "api.html").read_text(encoding="utf-8")
    for name in {*hudi_services.__all__} - {"__version__"}:
        found = getattr(hudi_services, name)
        home = "hudi_services.errors" if isinstance(found, type) and issubclass(found, Exception) else "hudi_services"
        assert f'id="{home}.{name}"' in reference, name
    for name in [name for name in dir(hudi_services.Table) if not name.startswith("_")]:
        assert f'id="hudi_services.Table.{name}"' in reference, name
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {one["location"].partition("#")[0] for one in index["docs"] if "heartbeat" in one["text"]}
    assert {"concurrency.html", "runbooks/abandoned-write.html"} <= found
    picture = (site / "clustering.html").read_text(encoding="utf-8")
    assert 'src="pictures/life-of-a-clustering.svg"' in picture


def test_what_ends_the_build(tmp_path: Path) -> None:
    """A dead link within docs/ and one out of it, a dead anchor, a page without navigation, an unknown name."""
    repository = copy(tmp_path)
    with (repository / "docs" / "limits.md").open("a", encoding="utf-8") as page:
        page.write("[a](no-such-page.md) [b](../findings/no_such_script.sh) [c](cleaning.md#no-such-heading)\n")
    (repository / "docs" / "lonely.md").write_text("# Lonely\n")
    done = make_docs(repository)
    assert done.returncode != 0
    for said in ("no-such-page.md", "no_such_script.sh", "no-such-heading", "lonely.md"):
        assert re.search(rf"WARNING .*(\n .*)*{said}", done.stderr), (said, done.stderr)
    with (repository / "docs" / "api.md").open("a", encoding="utf-8") as page:
        page.write("\n::: hudi_services.NoSuchName\n")
    assert "hudi_services.NoSuchName" in make_docs(repository).stderr
