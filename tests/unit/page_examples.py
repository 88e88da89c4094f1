"""The examples of docs/python-api.md and docs/write.md, run in the order of each page."""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python-api.md"
WRITE_PAGE = ROOT / "docs" / "write.md"
TABLE = "/data/rides"
LOGS = "/data/clicks"
NEW = "/data/trips"
_EXPECTED = re.compile(r"^(\S.*?) +# -> (.+)$")


def demo_table(folder: Path) -> Path:
    """The table of the page."""
    with zipfile.ZipFile(ROOT / "scripts" / "demo_table.zip") as archive:
        archive.extractall(folder)
    return Path(shutil.move(folder / "demo_table", folder / "rides"))


def examples(kind: str = "", page: Path = PAGE) -> list[str]:
    """Those that need nothing else ("") or spark, s3, airflow, or the frames of other libraries."""
    found = re.findall(r"^```python ?(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for needs, text in found if needs == kind]


def run_examples(texts: list[str], changes: dict[str, str], names: dict[str, Any] | None = None) -> int:
    """Run them as one program, with other places, and compare what they say that a line gives; how many did."""
    known = dict(names or {})
    compared = 0
    for text in texts:
        for old, new in changes.items():
            text = text.replace(old, new)
        pending: list[str] = []
        for line in [*text.splitlines(), "None  # -> None"]:
            expected = _EXPECTED.match(line)
            if expected is None:
                pending.append(line)
                continue
            exec("\n".join(pending), known)
            pending = []
            found = eval(expected[1], known)
            assert repr(found) == expected[2], f"{expected[1]} is {found!r}"
            compared += 1
    return compared - len(texts)
