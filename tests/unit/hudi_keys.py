"""The configuration keys of Hudi's releases, as `scripts/list_hudi_keys.py` found them in their bundles."""

from functools import cache
from pathlib import Path

OF_OTHER_BUNDLES = ("hoodie.aws.", "hoodie.write.lock.dynamodb.")
"""How the keys of Hudi's bundle for AWS begin, which is not among those that were read."""


@cache
def hudi_keys() -> frozenset[str]:
    lines = (Path(__file__).parent / "hudi_keys.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("# "))
