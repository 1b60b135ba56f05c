"""Each block of docs/python.md is a program that does what the page says, and that type checkers accept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY, Server

from agent_server import Client, Session

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/python.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf8"), re.M | re.S)

OUTPUTS = [
    ["Hello. completed 1"],
    ["Bash {'command': 'ls -d .'}", "Done.", "completed after 2 steps"],
    ["Report(passed=3, failed=0)"],
    ["Order 17 has shipped."],
    ["Bash asks: ", "Done."],
    ["called with {'command': 'mkdir made'}", "Done."],
    ["One.\nTwo.\n", "idle True\n", "idle False\n", " Say one.\n", " Say two.\n"],
    ["waiting_for_confirmation\ncompleted"],
    ["Hello.\nUserMessage\n", "Result\n"],
    ["conversation_not_found 404 "],
]


def test_the_package_has_the_version_of_the_server() -> None:
    version = json.loads((ROOT / "package.json").read_text())["version"]
    assert f'version = "{version}"\n' in (ROOT / "sdk/python/pyproject.toml").read_text()
    assert f"agent_server_client-{version}-py3-none-any.whl" in PAGE.read_text("utf8")


def test_the_output_of_each_program_is_known() -> None:
    assert len(PROGRAMS) == len(OUTPUTS)


@pytest.mark.parametrize("at", range(len(OUTPUTS)))
def test_a_program_of_the_page_runs(at: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env = dict(os.environ)
    if "AGENT_SERVER_URL" in PROGRAMS[at]:
        server: Server = request.getfixturevalue("server")
        # The server has the data directory of the test.
        env.update(OPENHANDS_DATA_DIR=str(tmp_path / "other"))
        env.update(AGENT_SERVER_URL=server.url, AGENT_SERVER_KEY=KEY)
    ran = subprocess.run([sys.executable, "-c", PROGRAMS[at]], env=env, cwd=work, capture_output=True, text=True)
    assert ran.stderr == ""
    for part in OUTPUTS[at]:
        assert part in ran.stdout


@pytest.mark.parametrize("described", [Client, Session])
def test_the_page_names_every_method(described: type) -> None:
    page = PAGE.read_text("utf8")
    # The transport is for the package itself.
    methods = [name for name, value in vars(described).items() if callable(value) and not name.startswith(("_", "transport"))]
    assert [name for name in methods if not re.search(rf"\b{name}\(", page)] == []


def test_type_checkers_accept_the_programs(tmp_path: Path) -> None:
    files = [tmp_path / f"program_{at}.py" for at in range(len(PROGRAMS))]
    for file, program in zip(files, PROGRAMS, strict=True):
        file.write_text(program)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, files)],
        capture_output=True,
        text=True,
    )
    assert checked.stdout.startswith("Success"), checked.stdout
