"""The cases of one client: each runs by itself, and is a line of standard output. The same as cases.ts."""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable

CASE_SECONDS = 60

URL = os.environ["AGENT_SERVER_URL"]
KEY = os.environ["AGENT_SERVER_KEY"]
HOME = os.environ["AGENT_SERVER_HOME"]
EXECUTABLE = os.environ["AGENT_SERVER_BIN"]
WRONG_KEY = "wrong-key-0123456789"

HELLO = "Hello"
GREETING = "Hello there, I am the agent."
SLOWLY = "slowly"
WORDS = "one two three four five six seven eight nine ten eleven twelve"
PLAN = "plan"
COMPUTE = "compute"
COMMAND = "echo $((40+2)) > answer && cat answer"
REASON = "The reason is 17."
LOOK_UP = "look up"
SHIPPED = "shipped yesterday"
ENDLESS = "endless"

Cases = dict[str, Callable[[], Awaitable[None]]]



def is_read(answer: str) -> bool:
    """True if the call was executed, and the agent has its result."""
    return answer.startswith("Read: ") and "42" in answer


def assert_denied(answer: str, reason: str = "did not allow") -> None:
    """The deny must have reached the agent, and nothing may have run."""
    assert answer.startswith("Read: "), answer
    assert reason in answer and "42" not in answer, answer


async def eventually(is_true: Callable[[], bool]) -> None:
    """Waits until it holds. Only the time of the case ends it."""
    while not is_true():
        await asyncio.sleep(0.02)


async def _run(cases: Cases) -> None:
    for name, case in cases.items():
        fault = None
        try:
            await asyncio.wait_for(case(), CASE_SECONDS)
        except BaseException:
            fault = traceback.format_exc()
        print(json.dumps({"case": name, "fault": fault}), flush=True)


def run_cases(cases: Cases) -> None:
    """Prints a line for each case. A case that raises is one that fails."""
    asyncio.run(_run(cases))
    sys.stdout.flush()
    # What a client has left in the background must not keep the process.
    os._exit(0)
