"""Google Cloud Storage as fake-gcs-server serves it, behind a proxy that adds what it lacks.

It has no uploads by the XML API, by which obstore writes: the proxy makes one of the JSON API of each. It stores no
parts either, so that the proxy keeps those of an upload in several parts until it is completed.
"""

import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote, urlencode

from hudi_services.stores.options import Value

from .bucket import Bucket
from .process import accepts, free_port, running
from .proxy import Answer, Headers, Request, forward, serving
from .tools import go_program

_MODULE, _VERSION = "github.com/fsouza/fake-gcs-server", "v1.56.1"
_DONE = Answer(200)


@contextmanager
def gcs(folder: Path) -> Iterator[Bucket]:
    """A server with the bucket `lake`, in memory; its log is in `folder`."""
    port = free_port()
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", "127.0.0.1"]
    command = [go_program(_MODULE, _VERSION), *place, "-backend", "memory"]
    server = f"http://127.0.0.1:{port}"
    with running(command, folder / "log", partial(accepts, port)), serving(_XmlUploads(server).answer) as endpoint:
        made = forward(_json_request("POST", "/storage/v1/b", b'{"name": "lake"}'), server)
        assert made.status == 200, made
        yield Bucket("gs://lake", endpoint, _options_at)


def _options_at(endpoint: str) -> dict[str, Value]:
    key = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    return {"service_account_key": json.dumps(key), "allow_http": True}


def _json_request(method: str, target: str, body: bytes, more: Headers = ()) -> Request:
    # The server knows itself by this name.
    told = (("Host", "127.0.0.1"), ("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    return Request(method, target, (*told, *more), body)


class _XmlUploads:
    """Answers for the server: uploads and copies by its JSON API, all else as it came."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._parts: dict[str, dict[int, bytes]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        query = request.query
        if "uploads" in query or "uploadId" in query:
            return self._of_parts(request, query.get("uploadId", ""))
        if request.method != "PUT":
            return forward(request, self._server)
        source = request.header("x-goog-copy-source")
        if source is None:
            return self._upload(request, request.body)
        found = forward(
            Request("GET", f"/{quote(unquote(source).lstrip('/'))}", (("Host", "127.0.0.1"),)), self._server
        )
        return self._upload(request, found.body) if found.status == 200 else found

    def _of_parts(self, request: Request, upload: str) -> Answer:
        if request.method == "POST" and not upload:
            with self._lock:
                upload = str(next(self._numbers))
                self._parts[upload] = {}
            bucket, _, key = request.path.partition("/")
            return _xml("InitiateMultipartUploadResult", Bucket=bucket, Key=key, UploadId=upload)
        with self._lock:
            parts = self._parts.get(upload)
            if parts is None:
                return Answer(404)
            if request.method == "PUT":
                parts[int(request.query["partNumber"])] = request.body
                return Answer(200, (("ETag", f'"{upload}-{request.query["partNumber"]}"'),))
            del self._parts[upload]
        if request.method == "DELETE":
            return Answer(204)
        named = re.findall(rb"<PartNumber>([0-9]+)</PartNumber>", request.body)
        done = self._upload(request, b"".join(parts[int(number)] for number in named))
        bucket, _, key = request.path.partition("/")
        return _xml(
            "CompleteMultipartUploadResult", done, Bucket=bucket, Key=key, ETag=dict(done.headers).get("ETag", "")
        )

    def _upload(self, request: Request, body: bytes) -> Answer:
        """Write an object by the JSON API, under the condition of the request."""
        bucket, _, key = request.path.partition("/")
        wanted = {"uploadType": "media", "name": key}
        generation = request.header("x-goog-if-generation-match")
        if generation is not None:
            wanted["ifGenerationMatch"] = generation
        target = f"/upload/storage/v1/b/{bucket}/o?{urlencode(wanted)}"
        # User metadata is in headers to both.
        told = tuple(one for one in request.headers if one[0].lower().startswith("x-goog-meta-"))
        done = forward(_json_request("POST", target, body, told), self._server)
        if done.status != 200:
            return done
        made = json.loads(done.body)
        return Answer(200, (("ETag", f'"{made["etag"]}"'), ("x-goog-generation", made["generation"])))


def _xml(name: str, done: Answer = _DONE, **values: str) -> Answer:
    """An answer with these elements, and the status and the headers of `done`; a failure as it is."""
    if done.status != 200:
        return done
    inner = "".join(
        f"<{tag}>{value.replace('&', '&amp;').replace('<', '&lt;')}</{tag}>" for tag, value in values.items()
    )
    return Answer(200, (*done.headers, ("Content-Type", "application/xml")), f"<{name}>{inner}</{name}>".encode())
