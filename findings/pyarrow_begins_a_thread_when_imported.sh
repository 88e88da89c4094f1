#!/bin/bash
# Guess: importing pyarrow begins no thread, the less so where ARROW_DEFAULT_MEMORY_POOL=system chooses an allocator that
#        has none: a process may import it and then fork workers.
# Instead: its jemalloc is there all the same, and begins a thread when it is loaded; a fork afterwards is the fork of a
#        process with threads. JE_ARROW_MALLOC_CONF=background_thread:false keeps it from that.
# Seen:  pyarrow 25.0.1 for Linux, x86-64, on 2026-11-28: the thread jemalloc_bg_thd.
# Who:   whoever forks workers from a process that has loaded what they need, as Spark's daemon of Python workers does;
#        Python 3.12 and later warn of such forks.
# Source: jemalloc(3), background_thread; the prefix of its variable is that of Arrow's build (je_arrow_).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==25.0.1
cat > "$folder/threads.py" <<'PYTHON'
import os
import sys


def threads():
    return sorted(open(f"/proc/self/task/{one}/comm").read().strip() for one in os.listdir("/proc/self/task"))


before = len(threads())
import pyarrow.lib

new = [one for one in threads() if "jemalloc" in one]
print(f"{before} thread before; pool {pyarrow.default_memory_pool().backend_name}; then also: {' '.join(new) or 'none'}")
PYTHON
look() { env ARROW_DEFAULT_MEMORY_POOL=system OPENBLAS_NUM_THREADS=1 "$@" "$folder/venv/bin/python" "$folder/threads.py"; }
look | tee "$folder/as_it_is"
look JE_ARROW_MALLOC_CONF=background_thread:false | tee "$folder/told"
grep -q '^1 thread before; pool system; then also: jemalloc_bg_thd$' "$folder/as_it_is"
grep -q '^1 thread before; pool system; then also: none$' "$folder/told"
