#!/bin/bash
# Guess: client_options of obstore are added to what the environment says: to give a timeout changes the timeout, and an
#        endpoint without TLS that AWS_ALLOW_HTTP=true allows stays allowed. The names are those of the variables, too.
# Instead: with client_options, even with none ({}), no variable of the HTTP client is read any more: every request to the
#        same endpoint fails with "builder error", which does not say that http is the cause. The endpoint itself and the
#        credentials are still taken from the environment. As an option, allow_http has to be repeated.
# Seen:  obstore 0.12.1 (object_store of Rust) on moto 5.2.5, on 2026-11-28.
# Who:   anyone who gives obstore a timeout or a proxy on an S3 of their own (MinIO, Ceph, versitygw), where the variables
#        had been enough.
# Source: the builder of object_store reads its options from variables where it is not given a ClientOptions, which replaces
#        all of them (AmazonS3Builder::with_client_options).
set -eu
folder=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q obstore==0.12.1 'moto[server]==5.2.5' boto3
port=$("$folder/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$folder/venv/bin/moto_server" -H 127.0.0.1 -p "$port" > "$folder/moto.log" 2>&1 &
cat > "$folder/run.py" <<'PYTHON'
import os
import sys
import time

import boto3
from botocore.exceptions import EndpointConnectionError
from obstore.exceptions import GenericError
from obstore.store import from_url

endpoint = f"http://127.0.0.1:{sys.argv[1]}"
os.environ.update(AWS_ACCESS_KEY_ID="user", AWS_SECRET_ACCESS_KEY="password", AWS_REGION="us-east-1")
os.environ.update(AWS_ENDPOINT=endpoint, AWS_ALLOW_HTTP="true")
client = boto3.client("s3", endpoint_url=endpoint)
for _ in range(100):
    try:
        client.create_bucket(Bucket="lake")
        break
    except EndpointConnectionError:
        time.sleep(0.2)
client.put_object(Bucket="lake", Key="key", Body=b"rows")


def read(**more):
    try:
        return bytes(from_url("s3://lake", **more).get("key").bytes())
    except GenericError as error:
        return str(error).splitlines()[0].rpartition("HTTP error: ")[2]


print("variables alone:", read())
print("with client_options={}:", read(client_options={}))
print("with a timeout:", read(client_options={"timeout": "30s"}))
print("with a timeout and allow_http:", read(client_options={"timeout": "30s", "allow_http": True}))
assert read() == read(client_options={"timeout": "30s", "allow_http": True}) == b"rows"
assert read(client_options={}) == read(client_options={"timeout": "30s"}) == "builder error"
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$port"
