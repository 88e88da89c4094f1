#!/bin/bash
# Guess: the e_tag that obstore's list gives for an object is the one that head gives, so that one can be compared with the
#        other: to see that nothing has changed since the listing, or to key a cache.
# Instead: on Azure, head, get and put give the ETag in quotes, and list without them: an object that nobody has touched looks
#        changed. As a condition of a put ({"e_tag": ...}) both forms work. On S3 both have quotes.
# Seen:  obstore 0.12.1 (object_store of Rust) on Azurite 3.35.0, on 2026-11-28.
# Who:   anyone who compares files of a table between a listing and a look, as caches of Hudi's timeline do.
# Source: List Blobs in the REST API of Azure Storage (its ETag elements have no quotes), RFC 9110 section 8.8.3.
set -eu
folder=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q obstore==0.12.1 azure-storage-blob==12.25.1
npm install --silent --no-audit --ignore-scripts --prefix "$folder" azurite@3.35.0 > "$folder/npm.log" 2>&1
port=$("$folder/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$folder/node_modules/.bin/azurite-blob" --blobHost 127.0.0.1 --blobPort "$port" --location "$folder/data" --silent \
    --skipApiVersionCheck --disableTelemetry > "$folder/azurite.log" 2>&1 &
cat > "$folder/run.py" <<'PYTHON'
import sys
import time

import obstore
from azure.core.exceptions import ServiceRequestError
from azure.storage.blob import BlobServiceClient
from obstore.store import AzureStore

# The account and key that Azurite publishes for tests.
NAME = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
endpoint = f"http://127.0.0.1:{sys.argv[1]}/{NAME}"
service = BlobServiceClient(endpoint, credential={"account_name": NAME, "account_key": KEY}, retry_total=0)
for _ in range(100):
    try:
        service.create_container("lake")
        break
    except ServiceRequestError:
        time.sleep(0.2)
config = {"account_name": NAME, "account_key": KEY, "endpoint": endpoint}
store = AzureStore("lake", config=config, client_options={"allow_http": True})
put = obstore.put(store, "key", b"1")["e_tag"]
head = obstore.head(store, "key")["e_tag"]
(listed,) = [one["e_tag"] for page in obstore.list(store) for one in page]
print("put:", put, "| head:", head, "| list:", listed)
assert put == head == f'"{listed}"' and listed != head
obstore.put(store, "key", b"2", mode={"e_tag": listed})
obstore.put(store, "key", b"3", mode={"e_tag": obstore.head(store, "key")["e_tag"]})
print("both forms are taken as a condition")
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$port"
