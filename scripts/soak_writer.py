"""A real Hudi writer of scripts/soak.py, one JVM, behind JSON lines: soak_writer.py RELEASE

Each line on stdin is {"write": PARQUET, "options": {...}, "path": TABLE} or {"read": TABLE, "options": {...}, "out":
FOLDER}; each line on stdout is {"error": text or null}. The text is the chain of causes, one a line, classes first.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.interop.peer_server import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY = "900m"
_LENGTH = 3000


def main() -> None:
    # The JVM inherits file descriptor 1: it gets stderr instead.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = session(sys.argv[1], cores=1, memory=_MEMORY)
    _reply(replies, None)
    for line in sys.stdin:
        error = None
        try:
            _serve(spark, json.loads(line))
        except Exception as e:
            error = causes(e)
        _reply(replies, error)


def _serve(spark: "SparkSession", asked: dict[str, Any]) -> None:
    if "write" in asked:
        frame = spark.read.parquet(asked["write"])
        frame.write.format("hudi").options(**asked["options"]).mode("append").save(asked["path"])
    else:
        frame = spark.read.format("hudi").options(**asked["options"]).load(asked["read"])
        frame.coalesce(1).write.parquet(asked["out"])


def causes(error: Exception) -> str:
    """The chain of Java's causes; a Python error as it is."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return repr(error)[:_LENGTH]
    found: list[str] = []
    while java is not None and len(found) < 12:
        found.append(str(java.toString())[:_LENGTH].replace("\n", " "))
        java = java.getCause()
    return "\n".join(found)


def _reply(replies: Any, error: str | None) -> None:
    replies.write(json.dumps({"error": error}) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
