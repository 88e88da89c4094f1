#!/bin/bash
# Guess: how many rows iter_batches gives at a time decides about memory, and hardly about time, once a batch is some MiB
#        large.
# Instead: each column of each batch costs some 50 microseconds, whatever it holds. A table of 2,000 columns in batches of
#        500 rows (8 MB each) takes several times as long as in batches of 20,000.
# Seen:  pyarrow 25.0.1, Linux, x86-64, one thread, on 2026-11-28: 4 to 7 times as long.
# Who:   whoever streams wide tables (events with a column for each property; Hudi tables of a warehouse) and chooses the
#        rows of a batch by their bytes, as a limit of memory suggests.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==25.0.1 numpy==2.4.6
cat > "$folder/batches.py" <<'PYTHON'
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

columns, rows = 2_000, 20_000
numbers = np.random.default_rng(1).random(rows)
pq.write_table(
    pa.table({f"c{number}": numbers + number for number in range(columns)}),
    sys.argv[1],
    compression="none",
    use_dictionary=False,
    row_group_size=rows,
)


def seconds(batch_rows):
    start = time.perf_counter()
    batches = pq.ParquetFile(sys.argv[1]).iter_batches(batch_rows, use_threads=False)
    assert sum(batch.num_rows for batch in batches) == rows
    return time.perf_counter() - start


small, large = (min(seconds(one) for _ in range(3)) for one in (500, rows))
print(f"batches of 500 rows: {small:.2f} s; of {rows}: {large:.2f} s; {small / large:.1f} times")
sys.exit(small < 2 * large)
PYTHON
"$folder/venv/bin/python" "$folder/batches.py" "$folder/wide.parquet"
