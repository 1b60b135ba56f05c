"""The server of a data directory of this machine: finds the one that runs, or starts the executable as a child process.

A child ends with the program: its standard input is a pipe of the program, and ends even if the program is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

import httpx

from .errors import AgentServerError, invalid
from .transport import Transport

PATIENCE_S = 10
"""How long a directory may be locked without a server that answers."""
START_S = 60
STOP_S = 15
POLL_S = 0.05
COMMAND = ["serve", "--generate-key", "--stop-with-stdin", "--host", "127.0.0.1", "--port", "0"]

_children: dict[Path, Child] = {}
"""By data directory: all clients of the program share a server, which ends with the program."""


class Child:
    def __init__(self, data_dir: Path) -> None:
        self._owner = os.getpid()
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # Open as long as the process.
        settings = {"OPENHANDS_DATA_DIR": str(data_dir), "OPENHANDS_LOG_LEVEL": "ERROR"}
        self._process = subprocess.Popen(
            [_executable(), *COMMAND],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env={**os.environ, **settings},
            # Ctrl+C is for the program, which may want to end its runs in order.
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def output(self) -> str:
        self._output.seek(0)
        return self._output.read()[-2000:].decode("utf8", "replace").strip()

    def stop(self) -> None:
        if os.getpid() != self._owner:
            return  # A fork of the program, which ends earlier.
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._output.close()


@atexit.register
def stop_servers() -> None:
    """Stops the servers that this program has started; without it they end with the program."""
    while _children:
        _children.popitem()[1].stop()


async def connect_or_start(data_dir: str | os.PathLike[str] | None) -> Transport:
    directory = _directory(data_dir)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if transport := await _connect(directory):
            return transport
        child = _children.get(directory)
        if child is None:
            _children[directory] = Child(directory)
            deadline = time.monotonic() + START_S
        elif child.has_ended():
            del _children[directory]
            output = child.output()
            # Another program has started one at the same time, or one is just ending.
            if "is in use by another server" not in output or time.monotonic() > deadline:
                raise AgentServerError("server_lost", f"The server of {directory} could not be started:\n{output}")
        elif time.monotonic() > deadline:
            raise AgentServerError("server_lost", f"The server of {directory} was not ready within {START_S} seconds.")
        await asyncio.sleep(POLL_S)


def _directory(given: str | os.PathLike[str] | None) -> Path:
    """The same as that of `agent-server serve`."""
    named = given or os.environ.get("OPENHANDS_DATA_DIR")
    if named:
        return Path(named).absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "agent-server"


def _executable() -> str:
    named = os.environ.get("AGENT_SERVER_BIN")
    found = shutil.which(named or "agent-server")
    if found:
        return found
    where = f"AGENT_SERVER_BIN is {named}, which is not an executable file" if named else "agent-server is not in PATH"
    raise invalid(f"{where}. Install it, set AGENT_SERVER_BIN to its path, or pass the URL of a server to Client.")


async def _connect(directory: Path) -> Transport | None:
    """None if no server answers there that only this user, or the owner of the directory, can have started."""
    try:
        owners = {os.geteuid(), directory.stat().st_uid}
        record = directory / "local.json"
        if not _is_trusted(record.lstat(), owners):
            return None
        found = json.loads(record.read_text("utf8"))
        kind, _, socket = found["address"].partition(":")
        if kind != "unix" or not _is_trusted(os.lstat(os.path.dirname(socket)), owners):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    transport = Transport("http://localhost", found["credential"], socket)
    try:
        await transport.call("GET", "/ready")
        return transport
    except (AgentServerError, httpx.HTTPError):
        await transport.close()
        return None


def _is_trusted(found: os.stat_result, owners: set[int]) -> bool:
    """What is in the record gets prompts and keys of models."""
    is_link = stat.S_ISLNK(found.st_mode)
    return not is_link and found.st_uid in owners and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
