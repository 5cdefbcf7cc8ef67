"""A local double of Azure: the documented answers of Data Factory, and the endpoint of a managed identity."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

FACTORY = "/subscriptions/sub-1/resourceGroups/group-1/providers/Microsoft.DataFactory/factories/factory-1"
TOKEN = f"secret-token-{uuid4().hex}"
IDENTITY_HEADER = uuid4().hex


@dataclass
class Answer:
    """What is answered instead; `happens` tells whether it is done all the same."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    happens: bool = False


@dataclass
class PipelineRun:
    run_id: str
    pipeline: str
    parameters: dict[str, Any]
    script: list[str]  # what each look at it finds; the last one stays
    message: str = ""

    @property
    def status(self) -> str:
        return self.script[0]

    def document(self) -> dict[str, Any]:
        return {
            "runId": self.run_id,
            "pipelineName": self.pipeline,
            "parameters": {name: str(value) for name, value in self.parameters.items()},
            "invokedBy": {"id": "80a01654a9d34ad18b3fcac5d5d76b67", "name": "Manual"},
            "runStart": "2018-06-16T00:37:44.6257014Z",
            "runEnd": "2018-06-16T00:38:12.7314495Z",
            "durationInMs": 28105,
            "status": self.status,
            "message": self.message,
            "lastUpdated": "2018-06-16T00:38:12.7314495Z",
            "annotations": [],
        }


class FactoryDouble:
    """A factory whose pipelines copy and remove files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[str, PipelineRun] = {}
        self.scripts: list[list[str]] = []  # of the next runs
        self.message = ""
        self.instead: dict[str, list[Answer]] = {}  # by the last part of the path
        self.asked: list[str] = []
        self.copies = True
        self.after_copying: Callable[[Path], object] = lambda _: None
        self.url = ""

    def settings(self) -> dict[str, str]:
        """Give the worker's environment."""
        named = {"SUBSCRIPTION_ID": "sub-1", "RESOURCE_GROUP": "group-1", "FACTORY_NAME": "factory-1"}
        pipelines = {"EXPORT_PIPELINE": "copy-out", "ENDPOINT": self.url}
        return {
            **{f"GRATICULE_ADF_{name}": value for name, value in {**named, **pipelines}.items()},
            "IDENTITY_ENDPOINT": f"{self.url}/identity",
            "IDENTITY_HEADER": IDENTITY_HEADER,
            "NO_PROXY": "127.0.0.1",
        }

    def calls(self, deed: str) -> int:
        """Tell how often something was asked for."""
        return sum(each.endswith(deed) for each in self.asked)

    def answer(self, method: str, path: str, query: dict[str, list[str]], headers: Any, body: Any) -> Answer:
        if path == "/identity":
            return self._token(query, headers)
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert query == {"api-version": ["2018-06-01"]}
        assert path.startswith(f"{FACTORY}/"), path
        parts = path.removeprefix(f"{FACTORY}/").split("/")
        self.asked.append(f"{method} {'/'.join(parts)}")
        deed = parts[-1] if method == "POST" else "run"
        instead = self.instead.get(deed) or []
        if instead and not instead[0].happens:
            return instead.pop(0)
        done = getattr(self, f"_{deed}")(parts, body)
        return instead.pop(0) if instead else Answer(200, done)

    def _token(self, query: dict[str, list[str]], headers: Any) -> Answer:
        assert headers["X-IDENTITY-HEADER"] == IDENTITY_HEADER
        assert query["resource"] == [self.url]
        token = {"access_token": TOKEN, "expires_on": str(int(time.time()) + 3600), "resource": self.url}
        return Answer(200, {**token, "token_type": "Bearer"})

    def _createRun(self, parts: list[str], body: Any) -> Any:  # noqa: N802 - as in the address
        assert parts[0] == "pipelines"
        run_id = str(uuid4())
        script = self.scripts.pop(0) if self.scripts else ["Queued", "Succeeded"]
        self.runs[run_id] = PipelineRun(run_id, parts[1], body, script, self.message)
        return {"runId": run_id}

    def _run(self, parts: list[str], _: Any) -> Any:
        run = self.runs[parts[1]]
        found = run.document()
        if run.status == "Succeeded" and self.copies:
            self._carry_out(run)
        if len(run.script) > 1:
            run.script.pop(0)
        return found

    def _queryPipelineRuns(self, _: list[str], body: Any) -> Any:  # noqa: N802 - as in the address
        assert {"lastUpdatedAfter", "lastUpdatedBefore", "filters"} == body.keys()
        (wanted,) = body["filters"]
        assert (wanted["operand"], wanted["operator"]) == ("PipelineName", "Equals")
        return {"value": [run.document() for run in self.runs.values() if run.pipeline in wanted["values"]]}

    def _cancel(self, parts: list[str], _: Any) -> Any:
        self.runs[parts[1]].script = ["Canceling", "Cancelled"]

    def _carry_out(self, run: PipelineRun) -> None:
        given = run.parameters
        target = self.folder / given["target_container"] / given["target_folder"]
        if run.pipeline == "remove":
            shutil.rmtree(target, ignore_errors=True)
        else:
            shutil.copytree(
                self.folder / given["source_container"] / given["source_folder"], target, dirs_exist_ok=True
            )
            self.after_copying(target)


@contextmanager
def factory_double(folder: Path) -> Iterator[FactoryDouble]:
    """Let a factory answer on a port of this machine."""
    double = FactoryDouble(folder)
    faults: list[BaseException] = []

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            url = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                body = json.loads(text) if text else None
                answer = double.answer(self.command, url.path, parse_qs(url.query), self.headers, body)
            except BaseException as fault:
                faults.append(fault)
                answer = Answer(418)
            if answer.status == 0:  # the connection breaks before the answer
                self.close_connection = True
                return
            data = b"" if answer.body is None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve  # noqa: N815 - as the server wants them

        def log_message(self, *_: Any) -> None:
            """Keep the tests' output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()
    assert faults == []
