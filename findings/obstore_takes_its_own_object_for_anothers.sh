#!/bin/bash
# Guess: when obstore's put with mode="create" raises AlreadyExistsError, somebody else has created the object: so a lock, or
#        a commit of a table format on top of it, was lost to another writer.
# Instead: the client tries a request again by itself when its connection breaks. Where the store had carried it out, and only
#        the answer was lost, the second try is told 412, and AlreadyExistsError is raised for the caller's own object. With
#        retry_config={"max_retries": 0} the same call raises GenericError, which says honestly that nobody knows.
# Seen:  obstore 0.12.1 (object_store of Rust), moto 5.2.5 behind a proxy that loses the answer of one PUT, on 2026-11-28.
# Who:   anyone who builds locks, leases or commits on create-if-absent, as Hudi's storage-based lock and timelines do.
# Source: PutMode::Create and RetryConfig of the crate object_store; conditional writes in the user guide of Amazon S3.
set -eu
folder=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q obstore==0.12.1 'moto[server]==5.2.5'
port=$("$folder/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$folder/venv/bin/python" -m moto.server -H 127.0.0.1 -p "$port" > "$folder/moto.log" 2>&1 &
cat > "$folder/run.py" <<'PYTHON'
import http.client
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import S3Store

port = int(sys.argv[1])
lost = []


def ask(method, path, body=b"", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.getheaders(), answer.read()


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, data = ask(self.command, self.path, body, dict(self.headers))
        if self.command == "PUT" and self.path not in lost:
            lost.append(self.path)
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = forward

    def log_message(self, *_):
        pass


for _ in range(100):
    try:
        ask("PUT", "/lake")
        break
    except OSError:
        time.sleep(0.2)
proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=proxy.serve_forever, daemon=True).start()


def store(**more):
    place = {"endpoint": f"http://127.0.0.1:{proxy.server_port}", "region": "us-east-1"}
    keys = {"access_key_id": "key", "secret_access_key": "secret"}
    return S3Store("lake", config={**place, **keys}, client_options={"allow_http": True}, **more)


def create(client, name):
    try:
        obstore.put(client, name, b"mine", mode="create", use_multipart=False)
    except (AlreadyExistsError, GenericError) as error:
        return type(error).__name__
    return "created"


found = create(store(), "by-default"), create(store(retry_config={"max_retries": 0}), "without-retries")
held = [bytes(obstore.get(store(), name).bytes()) for name in ("by-default", "without-retries")]
print("by default:", found[0], "| without retries:", found[1], "| what is stored:", *held)
assert found == ("AlreadyExistsError", "GenericError") and held == [b"mine", b"mine"]
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$port"
