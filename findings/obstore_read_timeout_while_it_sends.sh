#!/bin/bash
# Guess: read_timeout of obstore's client bounds the time without a byte of an answer: it begins when the request is sent, so
#        that a small one (to notice a store that stalls) does no harm to large objects on slow links.
# Instead: it also runs while the request's body is being sent, because no byte of an answer comes meanwhile: a put of an
#        object that takes longer than read_timeout to send fails, although the server reads it without a pause. connect_timeout
#        and reading large objects behave as one would think.
# Seen:  obstore 0.12.1 (reqwest, hyper), on 2026-11-28, against a server that reads 512 KiB in each tenth of a second.
# Who:   anyone who bounds stalls of a store and writes files of many megabytes over a slow link.
# Source: reqwest, ClientBuilder::read_timeout ("applies to each read operation, and resets after a successful read").
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q obstore==0.12.1
cat > "$folder/run.py" <<'PYTHON'
import socket
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from obstore.exceptions import BaseError
from obstore.store import S3Store

PIECE = 512 << 10


class Slow(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left:
            found = self.rfile.read(min(PIECE, left))
            if not found:
                return
            left -= len(found)
            time.sleep(0.1)
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def server_bind(self):
        # Small buffers: what the client has sent, the server has read.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        super().server_bind()


server = Server(("127.0.0.1", 0), Slow)
threading.Thread(target=server.serve_forever, daemon=True).start()


def put(timeout):
    store = S3Store(
        "lake",
        endpoint=f"http://127.0.0.1:{server.server_port}",
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True, "read_timeout": timeout, "timeout": "5m"},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(0)},
    )
    begun = time.monotonic()
    try:
        store.put("key", bytes(32 << 20), use_multipart=False)
        return "written", time.monotonic() - begun
    except BaseError as error:
        return "HTTP error" if "HTTP error" in str(error) else str(error), time.monotonic() - begun


for timeout in ("2s", "60s"):
    said, seconds = put(timeout)
    print(f"32 MiB with read_timeout {timeout}: {said} after {seconds:.1f} s")
    assert said == ("written" if timeout == "60s" else "HTTP error")
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
