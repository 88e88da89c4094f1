"""List the configuration keys of Hudi's releases: python -m scripts.list_hudi_keys BUNDLE.jar...

They are read from the constant pools of all classes of Hudi in the Spark bundles: every text that is a key by itself.
Keys of other bundles (AWS, Hudi Streamer, Flink) are not among them. The list, by the releases that have a key, is
written to tests/unit/hudi_keys.txt, against which tests/unit/test_effects.py holds what this program does with each.
"""

import re
import struct
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "tests" / "unit" / "hudi_keys.txt"
_KEY = re.compile(r"_?hoodie\.[A-Za-z0-9_.\-]*[A-Za-z0-9_]")
_RELEASE = re.compile(r"-(\d+\.\d+\.\d+)\.jar$")
_BYTES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""The bytes of a constant by its tag; a text has its own length."""
_TEXT, _WIDE = 1, (5, 6)


def texts(class_file: bytes) -> Iterator[str]:
    """The texts in the constant pool of a class. Format: section 4.4 of the Java Virtual Machine Specification."""
    count, at, number = struct.unpack(">H", class_file[8:10])[0], 10, 1
    while number < count:
        tag = class_file[at]
        if tag == _TEXT:
            (length,) = struct.unpack(">H", class_file[at + 1 : at + 3])
            yield class_file[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            at += _BYTES[tag]
        number += 2 if tag in _WIDE else 1


def keys(bundle: Path) -> set[str]:
    with zipfile.ZipFile(bundle) as jar:
        classes = [one for one in jar.namelist() if one.startswith("org/apache/hudi/") and one.endswith(".class")]
        return {text for one in classes for text in texts(jar.read(one)) if _KEY.fullmatch(text)}


def listed(bundles: list[Path]) -> str:
    """The list: a heading `# releases`, and below it the keys that these releases have, and no others."""
    releases: dict[str, list[str]] = defaultdict(list)
    for bundle in sorted(bundles, key=_release):
        for key in keys(bundle):
            releases[key].append(_release(bundle))
    groups: dict[str, list[str]] = defaultdict(list)
    for key, names in releases.items():
        groups[" ".join(names)].append(key)
    return "".join(f"# {names}\n" + "".join(f"{key}\n" for key in sorted(groups[names])) for names in sorted(groups))


def _release(bundle: Path) -> str:
    found = _RELEASE.search(bundle.name)
    if found is None:
        raise SystemExit(f"{bundle} is not named after a release")
    return found[1]


if __name__ == "__main__":
    LIST.write_text(listed([Path(name) for name in sys.argv[1:]]), encoding="utf-8")
