#!/bin/bash
# Guess: the Python workers of a pyspark that pip has installed import the pyspark that the driver imports, whose modules
#        are compiled.
# Instead: they import it from python/lib/pyspark.zip inside of it, which has no compiled module, and from a zip Python
#        keeps none: the daemon of the workers compiles all that it needs of pyspark and py4j anew in each session.
# Seen:  pyspark 3.5.9 with Java 17, master local[1], on 2026-11-28: about a second between the first task of a session of
#        Python and its first row, which is gone when the daemon imports the installed pyspark.
# Who:   anyone who runs short jobs of PySpark; spark.python.daemon.module names another daemon.
# Source: PythonUtils.sparkPythonPath and PythonWorkerFactory of Apache Spark; zipimport of Python.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==3.5.9
unset SPARK_HOME PYTHONPATH
cat > "$folder/program.py" <<'PYTHON'
import os
import pyspark
from pyspark.sql import SparkSession


def look(_):
    import os
    import sys
    import pyspark

    loaders = {type(m.__spec__.loader).__name__ for name, m in sys.modules.items() if name.startswith("pyspark.")}
    return pyspark.__file__, os.path.exists(pyspark.__spec__.cached), sorted(loaders)


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
(found,) = spark.sparkContext.parallelize([0], 1).map(look).collect()
home = os.path.dirname(pyspark.__file__)
print("driver:", os.path.relpath(pyspark.__file__, home), "compiled:", os.path.exists(pyspark.__spec__.cached))
print("worker:", os.path.relpath(found[0], home), "compiled:", found[1], "loaders:", *found[2])
spark.stop()
PYTHON
PYSPARK_PYTHON="$folder/venv/bin/python" "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/errors" | tee "$folder/out"
zip=$(echo "$folder"/venv/lib/python3*/site-packages/pyspark/python/lib/pyspark.zip)
echo "compiled modules in pyspark.zip: $("$folder/venv/bin/python" -m zipfile -l "$zip" | grep -c '\.pyc' || true)"
grep -q '^driver: __init__.py compiled: True$' "$folder/out"
grep -q '^worker: python/lib/pyspark.zip/pyspark/__init__.py compiled: False loaders: zipimporter$' "$folder/out"
if "$folder/venv/bin/python" -m zipfile -l "$zip" | grep -q '\.pyc'; then exit 1; fi
