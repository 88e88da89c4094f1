"""Pictures (SVG) of what runs print, for docs/pictures.

python scripts/terminal_pictures.py [--tree FOLDER] [--name NAME] [--large FOLDER]

The tables are real: a small one that Apache Hudi wrote (of the unit tests), one whose metadata table is damaged, and
one with two small files in each of 3,000 partitions, which this program writes first, in minutes; `--large` keeps it
for the next run. `--tree` is another working tree of this project, whose program is run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.text import Text

import hudi_services

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.operator_tables import small_files, wrong_metadata

ROOT = Path(__file__).resolve().parent.parent
PARTITIONS, BATCHES, ROWS = 3_000, 2, 60_000
WRITE = {
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.parquet.bloom.filter.enabled": False,
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
}
ALL_GROUPS = ("--hoodie-conf", f"hoodie.clustering.plan.strategy.max.num.groups={PARTITIONS}")
SHOWN = "/data/rides"
MOST_LINES = 60
"""What an older program prints may be much longer than a screen: the rest is cut."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of what runs print.")
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--name", default="after")
    parser.add_argument("--large", type=Path, help="the folder of the large table, which is made where it is not there")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("small", "wrong"):
            (folder / name).mkdir()
        small, wrong = small_files(folder / "small").path, wrong_metadata(folder / "wrong").path
        large = (arguments.large or folder / "large").resolve()
        if not large.exists():
            make_large(large)
        runs = {
            "2-groups-80": (80, small, ("schedule", "--dry-run")),
            "3000-groups-80": (80, large, ("schedule", "--dry-run", *ALL_GROUPS)),
            "3000-groups-160": (160, large, ("schedule", "--dry-run", *ALL_GROUPS)),
            "validate-80": (80, wrong, ("validate",)),
        }
        for name, (width, table, words) in runs.items():
            file = arguments.folder / f"{arguments.name}-{name}.svg"
            picture(file, width, words, printed(arguments.tree, width, table, words))
            print(f"{file}: {file.stat().st_size:,} bytes")


def make_large(path: Path) -> None:
    table = hudi_services.create(
        path,
        name="rides",
        record_key="id",
        partition_by="country,day",
        engine="local",
        options={**WRITE, "hoodie.datasource.write.hive_style_partitioning": True},
    )
    countries, days = ["at", "be", "ch", "de", "fr", "it"], PARTITIONS // 6
    for number in range(BATCHES):
        random = np.random.default_rng(number)
        places = np.concatenate([np.arange(PARTITIONS), (random.random(ROWS) ** 3 * PARTITIONS).astype(int)])
        dates = np.datetime64("2025-01-01") + np.arange(days)
        rows = {
            "id": [f"ride-{number}-{one:06d}" for one in range(len(places))],
            "country": pa.array(countries).take(pa.array(places % len(countries))),
            "day": pa.array(dates.astype(str).tolist()).take(pa.array(places // len(countries))),
            "fare": random.random(len(places)),
        }
        table.insert(pa.table(rows), options=WRITE)


def printed(tree: Path, width: int, table: Path, words: tuple[str, ...]) -> str:
    """All that the program prints, with its colours; paths of the table are those that the pages show."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": str(width), "FORCE_COLOR": "1"}
    line = [sys.executable, "-m", "hudi_services", *words, "--base-path", str(table)]
    done = subprocess.run(
        line, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout.replace(str(table), SHOWN)


def picture(file: Path, width: int, words: tuple[str, ...], text: str) -> None:
    console = Console(record=True, width=width, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    shell = [f"$ hudi-services {words[0]} --base-path {SHOWN} {' '.join(words[1:])}".rstrip(), *text.splitlines()]
    if len(shell) > MOST_LINES:
        shell[MOST_LINES:] = [f"… and {len(shell) - MOST_LINES} more lines"]
    for line in shell:
        console.print(Text.from_ansi(line), soft_wrap=False, overflow="fold")
    file.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(file), title=f"{width} columns")


if __name__ == "__main__":
    main()
