"""Names after the glossary of ARCHITECTURE.md: one meaning for each, and no pronoun in the place of a value."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_services

PACKAGE = Path(hudi_services.__file__).parent
GLOSSARY = (
    (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Words")[2].partition("\n## ")[0]
)
PRONOUNS = frozenset({"wanted", "shown", "late", "moved", "pairs", "found", "told", "one", "it", "this", "that"})
"""A parameter or a field is called after what it is: a request, a file slice, an index delta."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def signatures() -> Iterator[tuple[str, str]]:
    """Where a name stands, and the name: parameters of functions, and fields of classes."""
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                yield from ((f"{file}: {node.name}", name) for name in names)
            elif isinstance(node, ast.ClassDef):
                fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
                yield from ((f"{file}: {node.name}", one.id) for one in fields if isinstance(one, ast.Name))


@pytest.mark.thorough
def test_no_pronoun_stands_for_a_value() -> None:
    assert [f"{where}: {name}" for where, name in signatures() if name in PRONOUNS] == []


def test_a_class_has_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(file)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


@pytest.mark.thorough
def test_a_module_that_several_rooms_have_is_in_the_glossary() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", GLOSSARY.partition("### Modules")[2], re.MULTILINE))
    homes: dict[str, list[str]] = defaultdict(list)
    for file, _ in trees():
        if not file.endswith("__init__.py"):
            homes[Path(file).stem].append(file)
    assert {name for name, files in homes.items() if len(files) > 1} == told


def test_words_of_the_glossary_are_in_use() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    words = re.findall(r"^\| ([^|`]+?) \|", GLOSSARY.partition("### Modules")[0], re.MULTILINE)[2:]
    assert len(words) > 20
    for word in words:
        form = re.escape(word.rstrip("s")).replace(r"\ ", r"[ _]?")
        assert re.search(form, code, re.IGNORECASE), word
