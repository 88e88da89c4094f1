#!/bin/sh
# One would have guessed: on a table with hoodie.table.timeline.timezone=UTC, hoodie.clean.hours.retained=6 keeps the
# files of the last six hours, in whatever time zone the cleaner's JVM runs: instants and "now" are both in UTC.
# Instead: CleanerUtils.getEarliestCommitToRetain takes the zone of the timeline into account, and then formats the time
# with TimelineUtils.formatDate, which writes it on the clock of the JVM (HoodieInstantTimeGenerator.formatDate uses
# ZoneId.systemDefault). In a JVM that is ahead of UTC, files are deleted earlier, by as many hours: in Tokyo, a
# retention of 24 hours keeps 15. Behind UTC, they stay longer.
# Here the JVM is 5:59 hours ahead of UTC (so that nobody has to wait for hours), and six hours are to be kept: a file
# that was superseded a minute ago is deleted. With the same table in a JVM in UTC, nothing is deleted.
# Seen with: Hudi 0.15.0 and 1.2.0, Spark 3.5.9, on 2026-11-27: 2 of 3 files are left, with a JVM in UTC 3 of 3. Source: the two classes above, of 0.15.0, 1.0.2 and 1.2.0.
# Who meets it: writers and cleaners that run in local time, beside a table that was given a timeline in UTC for that.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==3.5.9
cat > "$folder/clean.py" <<'PYTHON'
import sys, time
from pyspark.sql import SparkSession

version, zone, path = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars.packages", f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", f"-Duser.timezone={zone}")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
options = {
    "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts", "hoodie.table.timeline.timezone": "UTC",
    "hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.embed.timeline.server": "false",
}

by_hours = {
    "hoodie.clean.automatic": "true", "hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS",
    "hoodie.cleaner.hours.retained": "6",
}

def upsert(ts, more={}):
    rows = spark.createDataFrame([("a", ts)], "id string, ts long").coalesce(1)
    rows.write.format("hudi").options(**{**options, **more}).mode("append").save(path)

upsert(1)
upsert(2)  # supersedes the file of the first write
time.sleep(75)
upsert(3, by_hours)
PYTHON
for run in 1.2.0,UTC,3 1.2.0,GMT+05:59,2 0.15.0,GMT+05:59,2; do
  IFS=, read -r version zone expected <<RUN
$run
RUN
  path=$folder/$version-$zone
  "$folder/venv/bin/python" "$folder/clean.py" "$version" "$zone" "$path" > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  files=$(find "$path" -name '*.parquet' | wc -l)
  echo "Hudi $version, JVM in $zone: $files of 3 files are left"
  [ "$files" -eq "$expected" ] || { echo "the behaviour has changed"; exit 1; }
done
