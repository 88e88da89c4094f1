#!/bin/bash
# Guess: a Python program under spark-submit has the standard streams of spark-submit: what it prints is on stdout, and its
#        warnings are on stderr, so that `spark-submit program.py > result.json` is a file of JSON.
# Instead: spark-submit starts the program as a child with both streams in one pipe, and prints all of it on its own stdout.
#        Warnings, logs and progress stand between the lines of the result; on stderr is only what Java logs.
# Seen:  pyspark 3.5.9 with Java 17, client mode, master local[1], on 2026-11-28.
# Who:   anyone whose scheduler reads the output of a Spark job: have the program write its result to a file.
# Source: PythonRunner of Apache Spark (redirectErrorStream(true), then RedirectThread to System.out).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==3.5.9
cat > "$folder/program.py" <<'PYTHON'
import sys

print("a warning", file=sys.stderr)
print('{"result": 1}')
PYTHON
run() { PYSPARK_PYTHON="$folder/venv/bin/python" "$@" > "$folder/out" 2> "$folder/errors"; }
run "$folder/venv/bin/python" "$folder/program.py"
echo "alone, on stdout: $(tr '\n' '|' < "$folder/out")"
grep -q '^a warning$' "$folder/errors"
unset SPARK_HOME
run "$folder/venv/bin/spark-submit" --master 'local[1]' "$folder/program.py"
echo "under spark-submit, on stdout: $(tr '\n' '|' < "$folder/out")"
grep -q '^a warning$' "$folder/out"
if grep -q '^a warning$' "$folder/errors"; then exit 1; fi
