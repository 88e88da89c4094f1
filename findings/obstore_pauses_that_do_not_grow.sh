#!/bin/bash
# Guess: obstore waits longer and longer before it asks a store again that answers 503: by its defaults (init_backoff 100 ms,
#        base 2, max_backoff 15 s, ten retries, retry_timeout three minutes) 0.1, 0.2, 0.4 ... 15 s, a minute in all, which is
#        what a store that throttles a whole fleet needs.
# Instead: eleven tries are over after some four seconds (2 to 13 in seven runs). Each pause is drawn anew between init_backoff and base times the pause
#        before it: with base 2 most pauses are about as short as the first one, and half of them are shorter than the one
#        before. With base 5 they grow (about 1.8 times each, in the middle). A retry_timeout of minutes is never reached.
# Seen:  obstore 0.12.1 (object_store of Rust), on 2026-11-28, against a server that answers 503 SlowDown to each request.
# Who:   anyone whose jobs read or write a bucket that throttles: tasks of a table service begin together, and give up together.
# Source: object_store, client/backoff.rs (decorrelated jitter); the same formula stands in the AWS Architecture Blog,
#        "Exponential Backoff And Jitter", with a factor of 3.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q obstore==0.12.1
cat > "$folder/run.py" <<'PYTHON'
import statistics
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from obstore.exceptions import BaseError
from obstore.store import S3Store

seen = []


class Busy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        seen.append(time.monotonic())
        body = b"<Error><Code>SlowDown</Code></Error>"
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
threading.Thread(target=server.serve_forever, daemon=True).start()


def seconds(base):
    """The seconds until the client gives up, and how many tries it made."""
    seen.clear()
    retry = {
        "max_retries": 10,
        "retry_timeout": timedelta(minutes=3),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=15), "base": base},
    }
    store = S3Store(
        "lake",
        endpoint=f"http://127.0.0.1:{server.server_port}",
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
        retry_config=retry,
    )
    try:
        store.get("key")
    except BaseError:
        pass
    return seen[-1] - seen[0], len(seen)


rounds = [seconds(2) for _ in range(7)]
middle = statistics.median(one for one, _ in rounds)
print("base 2, seconds of eleven tries:", sorted(round(one, 1) for one, _ in rounds))
print("doubling pauses would take:", round(sum(min(15, 0.1 * 2**number) for number in range(10)), 1))
assert {tries for _, tries in rounds} == {11}
assert middle < 25
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
