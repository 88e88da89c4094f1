"""The names of tables for the lock providers that derive the lock's place from the table's base path.

Source: the providers with Implicit in their name of Apache Hudi, 1.0 to 1.2, which hash the base path with XXH64.
"""

import re

from ..codecs.hashing import xxh64_hex

_S3A = re.compile("^s3a://", re.IGNORECASE)


def implicit_name(base_path: str) -> str:
    """The name of a table; `s3a:` and `s3:` are the same."""
    return xxh64_hex(_S3A.sub("s3://", base_path))
