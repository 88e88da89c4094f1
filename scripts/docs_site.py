"""A hook of mkdocs (see mkdocs.yml): links that GitHub can follow lead somewhere on the site, too.

The pages of docs/ link to files of the repository as GitHub reads them: to `../findings/x.sh`, or to `../README.md`.
mkdocs knows the folder docs/ alone. So this hook gives it a page for each such file, and for what these files link to:
Markdown as it is, a folder as its files, anything else as a block of code. README.md is the home page. The pages exist
in the build only; nothing is copied into docs/. The navigation gets them as its last section.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_DOCS, _HOME, _SECTION = "docs", "README.md", "In the repository"
_ALWAYS = (_HOME, "ARCHITECTURE.md", "CHANGELOG.md", "findings/README.md")
_LANGUAGES = {".properties": "properties", ".py": "python", ".sh": "bash", ".yaml": "yaml"}
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside of docs/ that a page leads to, and name it in the navigation."""
    root = Path(config.config_file_path).parent
    waiting = [*_ALWAYS, *(posixpath.join(_DOCS, file.src_uri) for file in files.documentation_pages())]
    added: set[str] = set()
    for path in waiting:
        place = root / path
        if not place.exists() or (path in added):
            continue
        if not path.startswith(f"{_DOCS}/"):
            files.append(File.generated(config, _site_uri(path), content=_page_of(place)))
            added.add(path)
        if place.suffix == ".md":
            targets = (_target(path, link) for link in _links(place.read_text(encoding="utf-8")))
            waiting.extend(one for one in targets if one and not one.startswith((f"{_DOCS}/", "..")))
    assert config.nav is not None
    config.nav.append({_SECTION: [_site_uri(path) for path in sorted(added - {_HOME})]})
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with its links as they are on the site, and code whose language has nothing behind it."""
    source = _source(page.file.src_uri)

    def on_site(found: "re.Match[str]") -> str:
        target = _target(source, found[1])
        if target is None:
            return found[0]
        uri = posixpath.relpath(_site_uri(target), posixpath.dirname(page.file.src_uri) or ".")
        return f"]({urlunsplit(('', '', uri, '', urlsplit(found[1]).fragment))})"

    # Words behind the language tell our tests what an example needs; mkdocs would not know the block as code.
    return "".join(
        re.sub(r"^```(\w+) .*", r"```\1", part) if is_code else _LINK.sub(on_site, part)
        for is_code, part in _parts(markdown)
    )


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    """The pieces of a text in order: whether it is a block of code, and the piece."""
    end = 0
    for found in _FENCED.finditer(markdown):
        yield False, markdown[end : found.start()]
        yield True, found[0]
        end = found.end()
    yield False, markdown[end:]


def _links(markdown: str) -> list[str]:
    return [link for is_code, part in _parts(markdown) if not is_code for link in _LINK.findall(part)]


def _target(source: str, link: str) -> str | None:
    """The path in the repository that a link on the page `source` leads to; None within the page and to other hosts."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), parts.path))


def _site_uri(path: str) -> str:
    """Where mkdocs finds the page of a path in the repository, below its folder of pages."""
    if path == _HOME:
        return "index.md"
    if path.startswith(f"{_DOCS}/"):
        return path.removeprefix(f"{_DOCS}/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _source(uri: str) -> str:
    """The path in the repository whose page this is."""
    if uri == "index.md":
        return _HOME
    return uri.removeprefix("repository/") if uri.startswith("repository/") else posixpath.join(_DOCS, uri)


def _page_of(place: Path) -> str:
    """A page that shows a file, or the files of a folder."""
    if place.suffix == ".md":
        return place.read_text(encoding="utf-8")
    shown = sorted(place.iterdir()) if place.is_dir() else [place]
    title = f"# {place.stem.replace('_', ' ')}"
    heads = (f"## {one.name}" if place.is_dir() else f"The file `{one.name}`:" for one in shown)
    codes = (f"~~~~{_LANGUAGES.get(one.suffix, 'text')}\n{one.read_text(encoding='utf-8')}\n~~~~" for one in shown)
    return "\n\n".join([title, *(part for pair in zip(heads, codes, strict=True) for part in pair)])
