"""Writes hudi_services/calendars/calendar_zones.py from the tables of the installed Spark; it has no arguments.

Spark fixed these tables once (they have been the same from 3.0 to 4.3), so this is run only if Spark changes them.
"""

import json
import textwrap
import zipfile
from collections import defaultdict
from pathlib import Path

import pyspark

_TABLES = "julian-gregorian-rebase-micros.json"
_OUT = Path(__file__).parents[1] / "hudi_services" / "files" / "calendar_zones.py"
_HEAD = '''"""What Spark knows of time zones before 1900, where it rebases timestamps of the hybrid calendar.

Made by scripts/calendar_zones.py from Spark's tables; a line for each rule, and its zones:

    OFFSET CORRECTION[ TIME CORRECTION]...: ZONE...

OFFSET is the offset from UTC, in seconds, by which java.util counts all times before 1900; a CORRECTION is how many
seconds the offset of java.time, which is the local mean time of the place, is less, from TIME (epoch seconds) on.
Newer releases of the time zone database tell other local mean times of some places; Spark keeps those of its tables.
Source: RebaseDateTime, julian-gregorian-rebase-micros.json (Spark 3.0 to 4.3).
"""

ZONES = """
'''


def main() -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-sql-api_*.jar")
    with zipfile.ZipFile(jar) as archive:
        zones = {one["tz"]: one for one in json.loads(archive.read(_TABLES))}
    switches, diffs = zones["UTC"]["switches"], zones["UTC"]["diffs"]
    rules = defaultdict(list)
    for name, zone in sorted(zones.items()):
        offset, correction = switches[0] - zone["switches"][0], zone["diffs"][0] - diffs[0]
        common = len(switches)
        assert zone["switches"][:common] == [one - offset for one in switches], name
        assert zone["diffs"][:common] == [one + correction for one in diffs], name
        later = zip(zone["switches"][common:], zone["diffs"][common:], strict=True)
        rules[(offset, correction, *(number for pair in later for number in pair))].append(name)
    lines = [f"{' '.join(map(str, rule))}: {' '.join(names)}" for rule, names in sorted(rules.items())]
    wrapped = (textwrap.fill(one, 120, subsequent_indent=" ", break_on_hyphens=False) for one in lines)
    _OUT.write_text(_HEAD + "\n".join(wrapped) + '\n"""\n')


if __name__ == "__main__":
    main()
