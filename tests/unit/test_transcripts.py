"""What the pages show of the console is what the program prints: every transcript is run on a table of its state.

A comment above each block says how: `<!-- table: RECIPE -->` (of operator_tables; blocks of one page that name the same
recipe go on with the same table), with `, command: WORDS` where the block shows only what was printed, or with `, anew`
for another table. `<!-- not run: WHY -->` stands where it takes a cluster, another process or a running writer; errors,
hints and warnings there are compared with the texts of the program.

Lines may leave out columns and other lines. Instants, ids, sizes, times and host names are any.
"""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from .operator_tables import RECIPES, OperatorTable, Printed, machine
from .test_docs import ANYTHING, DOCUMENTS, PACKAGE, ROOT, literals

PAGES = [name for name in DOCUMENTS if name == "README.md" or name.startswith("docs/")]
MOST_NOT_RUN = 24
TABLE = "/data/rides"
_BLOCK = re.compile(r"^(?:<!-- (?P<how>.*?) -->\n)?```\w*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY = (
    (re.compile(r"\b\d{17}\b"), "INSTANT"),
    (re.compile(r"\b\d{8}T\d{9}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"[\w/=…-]+[_…][\w…-]+\.parquet"), "FILE"),
    (re.compile(r"-?\b[\d.]+ (bytes|[KMGT]iB)"), "SIZE"),
    (re.compile(r"\b[\d.]+ (ms|seconds?|minutes?|hours?|days?)\b"), "DURATION"),
    (re.compile(r"\b(byte|process) \d+"), r"\1 N"),
    (re.compile(r"\(process N on \S+\)"), "PROCESS"),
)


@dataclass(frozen=True)
class Block:
    page: str
    how: str
    text: str

    @property
    def recipe(self) -> str:
        found = re.match(r"table: ([\w-]+)", self.how)
        return found[1] if found else ""

    @property
    def command(self) -> str:
        return self.how.partition(", command: ")[2]


def blocks(page: str) -> list[Block]:
    found = [
        Block(page, one["how"] or "", one["text"]) for one in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    ]
    return [one for one in found if "$ hudi-services " in one.text or one.text.startswith(("error: ", "warning: "))]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Command lines of this program, each with the lines that are printed."""
    if block.command:
        yield block.command, block.text.splitlines()
        return
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        first, *printed = part.splitlines()
        words = first.partition("hudi-services ")
        if words[1]:
            yield words[2], printed


def any_of(text: str) -> str:
    for pattern, name in _ANY:
        text = pattern.sub(name, text)
    return text


def rest_of(told: str, words: Sequence[str]) -> list[str] | None:
    """What comes after the words of the line `told`, which are among `words` in this order; None where they are not."""
    left = list(words)
    for word in told.split():
        pattern = ".*".join(map(re.escape, word.split(ANYTHING)))
        if word in (ANYTHING, "\\"):
            continue
        at = next((number for number, one in enumerate(left) if re.fullmatch(pattern, one)), None)
        if at is None:
            return None
        left = left[at + 1 :]
    return left


def check(printed: Printed, told: Sequence[str], path: Path) -> None:
    lines = [any_of(line.replace(str(path), TABLE)) for line in f"{printed.out}{printed.err}".splitlines()]
    # The pages have narrower lines than the program prints here: one of its lines may be several of theirs.
    left, words = iter(lines), list[str]()
    for line in filter(str.strip, told):
        rest = rest_of(any_of(line), words)
        while rest is None:
            following = next(left, None)
            assert following is not None, (line, lines)
            rest = rest_of(any_of(line), following.split())
        words = rest
    assert (printed.code != 0) == any(line.startswith("error: ") for line in told) or printed.code in (5, 7), printed


def given(words: str, table: OperatorTable) -> list[str]:
    """The command line for this table: the one instant, quarantine, file of keys and of rows that it is about."""
    texts = {"keys.txt": str(table.keys_file), "new.parquet": str(table.rows_file), TABLE: str(table.path)}
    found = []
    for word in shlex.split(words):
        instant = re.fullmatch(r"\d{17}|INSTANT", word) and table.instant
        quarantine = re.fullmatch(r"\d{8}T\d{9}", word) and table.quarantine
        found.append(instant or quarantine or texts.get(word, word))
    return found if "--base-path" in found else [*found, "--base-path", str(table.path)]


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in PAGES if any(one.recipe for one in blocks(page))])
def test_the_transcripts_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables: dict[str, tuple[OperatorTable, Callable[[Sequence[str]], Printed]]] = {}
    with ExitStack() as stack:
        for number, block in enumerate(blocks(page)):
            if not block.recipe:
                continue
            if block.recipe not in tables or ", anew" in block.how:
                folder = tmp_path / str(number)
                folder.mkdir()
                table = RECIPES[block.recipe](folder)
                if table.zone:
                    monkeypatch.setenv("TZ", table.zone)
                    time.tzset()
                    stack.callback(time.tzset)
                    stack.callback(os.environ.pop, "TZ", None)
                tables[block.recipe] = table, stack.enter_context(machine(table))
            table, run = tables[block.recipe]
            for words, told in commands(block):
                check(run(given(words, table)), told, table.path)


def test_every_transcript_is_run_or_says_why_not() -> None:
    unmarked = [one for page in PAGES for one in blocks(page) if not one.recipe and not one.how.startswith("not run: ")]
    assert unmarked == []
    assert {one.recipe for page in PAGES for one in blocks(page)} - {""} <= set(RECIPES)
    assert sum(not one.recipe for page in PAGES for one in blocks(page)) <= MOST_NOT_RUN


@pytest.mark.thorough
def test_what_is_not_run_quotes_the_program() -> None:
    for one in (one for page in PAGES for one in blocks(page) if not one.recipe):
        for line in one.text.splitlines():
            kind, _, sentence = line.partition(": ")
            if kind in ("error", "hint", "warning") and not one.how.endswith("; the words of the store"):
                assert any(says(pieces, sentence) for pieces in texts_of_the_program()), (one.page, line)


@cache
def texts_of_the_program() -> list[list[str]]:
    """Each literal of the program, in the pieces between what is filled in; short ones say nothing."""
    said = {text for path in PACKAGE.rglob("*.py") for text in literals(path)}
    return [re.split(rf"{ANYTHING}|{{}}", text) for text in said if len(text.replace(ANYTHING, "")) > 10]


def says(pieces: Sequence[str], sentence: str) -> bool:
    """Whether the pieces are in the sentence, in this order."""
    at = 0
    for piece in pieces:
        at = sentence.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True
