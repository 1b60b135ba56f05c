"""The executable in `AGENT_SERVER_BIN`, its scripted model, and a data directory for each test."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_server.local import stop_servers

BIN = os.environ["AGENT_SERVER_BIN"]
PATIENCE_S = 300
"""Of one test, on a machine that is busy."""
KEY = "test-master-key-0123456789"


def _calls(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


_QUESTION = {"question": "Which database?", "header": "Database", "multiSelect": False}
_OPTIONS = [{"label": "SQLite", "description": ""}, {"label": "PostgreSQL", "description": ""}]
_REPLIES: dict[str, list[dict[str, Any]]] = {
    "orders": [_calls(*(("look_up_order", {"number": each}) for each in ("17", "18"))), {"text": "Both have shipped."}],
    "order": [_calls(("look_up_order", {"number": "17"})), {"text": "Order 17 has shipped."}],
    "wrong input": [_calls(("look_up_order", {"number": 17})), {"text": "It was refused."}],
    "directory": [_calls(("Bash", {"command": "mkdir made"})), {"text": "Done."}],
    "database": [_calls(("AskUserQuestion", {"questions": [{**_QUESTION, "options": _OPTIONS}]})), {"text": "Done."}],
    "files": [_calls(("Bash", {"command": "ls -d ."})), {"text": "Done."}],
    "delegate": [
        _calls(("Task", {"description": "x", "prompt": "long", "subagent_type": "general-purpose", "run_in_background": True})),
        {"text": "Delegated."},
        {"text": "I read that it ended."},
    ],
    "six notes": [_calls(*(("Write", {"file_path": f"note-{at}", "content": "x"}) for at in range(6))), {"text": "Done."}],
    "write one": [_calls(("Bash", {"command": "echo one > notes.txt"})), {"text": "Done."}],
    "write two": [_calls(("Bash", {"command": "echo two > notes.txt"})), {"text": "Done."}],
    "long": [_calls(("Bash", {"command": "sleep 600"})), {"text": "Done."}],
    "story": [{"text": "Once upon a time. " * 40, "chunk_delay_ms": 10}],
    # A minute, unless it is interrupted.
    "saga": [{"text": "Once upon a time. " * 300, "chunk_delay_ms": 50}],
    "separators": [{"text": "one\u2028two\u2029three\u0085four"}],
    "json": [{"text": '{"passed": 3, "failed": 0}'}],
    "fail": [{"status": 400, "error": {"message": "no such model"}}],
    "say two": [{"text": "Two."}],
    # What the server asks when a message came while the model wrote its answer.
    "came while you were writing": [{"text": "Two."}],
    "say one": [{"text": "One."}],
}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a model that answers by the words of the last message."""
    script = tmp_path_factory.mktemp("model") / "script.json"
    replies = [*({"when": word, "turns": turns} for word, turns in _REPLIES.items()), {"turns": [{"text": "Hello."}]}]
    script.write_text(json.dumps({"replies": replies}))
    with subprocess.Popen([BIN, "scripted-model", "--port", "0", str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        found = re.search(rb"listens on (\S+)\. ", process.stdout.readline())
        assert found
        yield found[1].decode()
        process.terminate()


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Most tests use one server, which the first of them starts."""
    yield tmp_path_factory.mktemp("data")
    stop_servers()


@pytest.fixture(autouse=True)
def settings(model: str, shared_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the programs."""
    for name in [name for name in os.environ if name.startswith(("LLM_", "OPENHANDS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LLM_MODEL", "scripted")
    monkeypatch.setenv("LLM_BASE_URL", model)
    monkeypatch.setenv("LLM_API_KEY", "scripted-model-key")
    monkeypatch.setenv("OPENHANDS_DATA_DIR", str(shared_directory))


@pytest.fixture
def own_directory(settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory without sessions, whose server ends with the test."""
    monkeypatch.setenv("OPENHANDS_DATA_DIR", str(tmp_path / "data"))
    yield tmp_path / "data"
    stop_servers()


class Server:
    """A server with a port, which can be killed and started again on the same data."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [BIN, "serve", "--host", "127.0.0.1", "--port", str(self.port), "--log-format", "json"],
            env={**os.environ, "OPENHANDS_MASTER_KEY": KEY},
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout
        if not any(b'"ready"' in line for line in self._process.stdout):
            raise RuntimeError("the server did not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def server(own_directory: Path, unused_port: int) -> Iterator[Server]:
    running = Server(unused_port)
    yield running
    running.kill()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that are `async`."""
    function: Callable[..., Any] = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters}
    asyncio.run(asyncio.wait_for(function(**arguments), PATIENCE_S))
    return True
