"""The client of the Agent Client Protocol for Python, in front of `agent-server acp`."""

import asyncio
import contextlib
import os
import uuid

import cases
from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Editor(Client):
    def __init__(self) -> None:
        self.text = ""
        self.asked: list[str] = []
        self.option: str | None = None

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call.title)
        if self.option is None:
            await asyncio.Event().wait()
        [option] = [each for each in options if each.kind == self.option]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text


@contextlib.asynccontextmanager
async def session(key: str = cases.KEY):
    editor = Editor()
    env = {**os.environ, "OPENHANDS_MASTER_KEY": key}
    directory = os.path.join(cases.HOME, str(uuid.uuid4()))
    os.mkdir(directory)
    async with spawn_agent_process(editor, cases.EXECUTABLE, "acp", "--server", cases.URL, env=env) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        begun = await agent.new_session(cwd=directory)

        async def prompt(text: str) -> str:
            return (await agent.prompt(session_id=begun.session_id, prompt=[text_block(text)])).stop_reason

        async def cancel() -> None:
            await agent.cancel(session_id=begun.session_id)

        yield editor, prompt, cancel


async def text() -> None:
    async with session() as (editor, prompt, _):
        assert await prompt(cases.SLOWLY) == "end_turn"
        assert editor.text == cases.WORDS, editor.text


async def tool() -> None:
    async with session() as (editor, prompt, _):
        assert await prompt(cases.PLAN) == "end_turn"
        assert editor.text.startswith("I plan.Read: "), editor.text


async def decide(option: str) -> str:
    async with session() as (editor, prompt, _):
        editor.option = option
        assert await prompt(cases.COMPUTE) == "end_turn"
        assert editor.asked == [cases.COMMAND]
        return editor.text.removeprefix("I compute.")


async def allow() -> None:
    assert cases.is_read(await decide("allow_once"))


async def deny() -> None:
    cases.assert_denied(await decide("reject_once"))


async def cancel() -> None:
    async with session() as (editor, prompt, cancel):
        running = asyncio.create_task(prompt(cases.ENDLESS))
        await cases.eventually(lambda: "word word" in editor.text)
        await cancel()
        assert await running == "cancelled"
        assert await prompt(cases.HELLO) == "end_turn"
        assert editor.text.endswith(cases.GREETING)


async def cancel_while_a_call_waits() -> None:
    async with session() as (editor, prompt, cancel):
        running = asyncio.create_task(prompt(cases.COMPUTE))
        await cases.eventually(lambda: len(editor.asked) > 0)
        await cancel()
        assert await running == "cancelled"
        assert await prompt(cases.HELLO) == "end_turn"


async def wrong_key() -> None:
    try:
        async with session(cases.WRONG_KEY):
            raise AssertionError("a wrong key was accepted")
    except RequestError as error:
        assert error.code == -32000, error


cases.run_cases(
    {
        "text": text,
        "tool": tool,
        "allow": allow,
        "deny": deny,
        "cancel": cancel,
        "cancel while a call waits": cancel_while_a_call_waits,
        "wrong key": wrong_key,
    }
)
