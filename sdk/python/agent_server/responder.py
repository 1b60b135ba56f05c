"""Answers for the program what a session waits for: decisions, questions, and calls of its tools."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from .calls import call, message_of
from .errors import AgentServerError
from .options import Allow, Deny, Options, PermissionContext, Verdict
from .tools import Tool, ToolContext
from .transport import json_bytes

if TYPE_CHECKING:
    from . import types

MAX_OUTPUT_BYTES = 6 * 1024 * 1024
MAX_MESSAGE_CHARS = 10_000
DECLINE = "Decline"
"""The option of each form of an MCP server that declines it."""
SETTLED = {
    "already_answered",
    "conversation_deleted",
    "conversation_not_found",
    "input_changed",
    "request_closed",
    "request_not_found",
}
"""Somebody else was faster, or nobody waits for the answer any more."""

Key = tuple[str, str]
Send = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class Work:
    """Tasks by key. One that somebody has ended is cancelled; an error of any other ends the session's query."""

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        self._tasks: dict[Any, asyncio.Task[None]] = {}

    def start(self, key: Any, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._done(key, done))

    def __contains__(self, key: object) -> bool:
        return key in self._tasks

    def end(self, ends: Callable[[Any], bool]) -> None:
        for key in [key for key in self._tasks if ends(key)]:
            self._tasks.pop(key).cancel()

    def _done(self, key: Any, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        error = None if task.cancelled() else task.exception()
        if error and not (isinstance(error, AgentServerError) and error.code in SETTLED):
            self._fail(error)


class Responder:
    """`executing`: the calls that this program executes, which another query of the same session must not execute again.
    `pause` ends the run. `declined` is called when the session waits for somebody else.
    """

    def __init__(
        self,
        options: Options,
        send: Send,
        *,
        pause: Callable[[], Awaitable[None]],
        fail: Callable[[BaseException], None],
        declined: Callable[[], None],
        executing: set[str],
    ) -> None:
        self._options = options
        self._tools = options.own_tools
        self._send = send
        self._pause = pause
        self._declined = declined
        self._executing = executing
        self._work = Work(fail)
        self._others: set[str] = set()
        self._interrupting = 0
        self._has_declined = False

    def take(self, event: types.Event) -> None:
        """Gets each event in order."""
        if event["type"] == "RequestOpened":
            self._begin(event)
        elif event["type"] == "RequestAnswered" or event["type"] == "RequestClosed":
            ended = {(event["request_id"], each) for each in event["tool_use_ids"]}
            self._work.end(lambda key: key in ended)
            self._others.discard(event["request_id"])
        elif event["type"] == "ToolResult":
            tool_use_id = event["tool_use_id"]
            self._work.end(lambda key: bool(key[1] == tool_use_id))

    def may_answer(self, status: str) -> bool:
        if status == "waiting_for_confirmation":
            return self._options.can_use_tool is not None or self._interrupting > 0
        if status == "waiting_for_input":
            return self._options.answer_questions is not None and not self._has_declined
        if status == "waiting_for_client":
            return bool(self._tools) and not self._others
        return self._interrupting > 0

    def close(self) -> None:
        self._work.end(lambda _: True)

    def _begin(self, event: types.RequestOpened) -> None:
        request_id = event["request_id"]
        if event["kind"] == "permission" and self._options.can_use_tool:
            for each in event["payload"]["tool_uses"]:
                self._start((request_id, each["tool_use_id"]), self._decide(event, each))
        elif event["kind"] == "elicitation" or (event["kind"] == "question" and self._options.answer_questions):
            self._start((request_id, (event["tool_use_ids"] or [""])[0]), self._ask(event))
        elif event["kind"] == "client_tool":
            tool = self._tools.get(event["payload"]["name"])
            if not tool:
                self._others.add(request_id)
            elif request_id not in self._executing:
                self._start((request_id, event["tool_use_ids"][0]), self._execute(tool, event))

    def _start(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        if key in self._work:
            work.close()
        else:
            self._work.start(key, work)

    async def _decide(self, event: types.PermissionOpened, asked: types.AskedToolUse) -> None:
        verdict = await self._verdict(event, asked)
        send = self._send_verdict(event, asked, verdict)
        if isinstance(verdict, Deny) and verdict.interrupt:
            self._interrupting += 1
            try:
                # Before the decision, with which the run would continue.
                await self._pause()
                await send
            finally:
                self._interrupting -= 1
                self._declined()
            return
        try:
            await send
        except AgentServerError as error:
            # Such as an input that does not fit the tool.
            if error.status != 400 or isinstance(verdict, Deny):
                raise
            await self._send_verdict(event, asked, _failed(error.message))

    async def _verdict(self, event: types.PermissionOpened, asked: types.AskedToolUse) -> Verdict:
        assert self._options.can_use_tool
        context = PermissionContext(event["conversation_id"], asked["tool_use_id"], asked["reason"], asked.get("rules", []))
        try:
            verdict = await call(self._options.can_use_tool, asked["name"], asked["input"], context)
            if not isinstance(verdict, (Allow, Deny)):
                return _failed(f"it returned {verdict!r}, and neither Allow() nor Deny()")
            json_bytes(dataclasses.asdict(verdict))
            return verdict
        except Exception as error:
            return _failed(message_of(error))

    async def _send_verdict(self, event: types.PermissionOpened, asked: types.AskedToolUse, verdict: Verdict) -> None:
        decision: dict[str, Any] = {"tool_use_id": asked["tool_use_id"], "input_hash": asked["input_hash"]}
        decision["behavior"] = "deny" if isinstance(verdict, Deny) else "allow"
        if isinstance(verdict, Deny) and verdict.message:
            decision["message"] = verdict.message[:MAX_MESSAGE_CHARS]
        if isinstance(verdict, Allow) and verdict.updated_input is not None:
            decision["updated_input"] = verdict.updated_input
        if verdict.remember:
            decision["remember"] = True
        await self._send(event["request_id"], {"kind": "permission", "decisions": [decision]})

    async def _ask(self, event: types.QuestionOpened | types.ElicitationOpened) -> None:
        """An exception of the program ends the query with it.

        A form of an MCP server that nobody answers is declined: its call keeps the run active, unlike a question.
        """
        ask = self._options.answer_questions
        answers = await call(ask, event["payload"]["questions"]) if ask else None
        if answers is None and event["kind"] == "elicitation":
            answers = {"0": DECLINE}
        if answers is None:
            self._has_declined = True
            self._declined()
        else:
            await self._send(event["request_id"], {"kind": event["kind"], "answers": dict(answers)})

    async def _execute(self, tool: Tool, event: types.ClientToolOpened) -> None:
        request_id = event["request_id"]
        self._executing.add(request_id)
        try:
            answer = await _output_of(tool, event)
            try:
                await self._send(request_id, {"kind": "client_tool", **answer})
            except AgentServerError as error:
                if error.status not in (400, 413, 422):
                    raise
                refused = _failed_output(f"The result was refused: {error.message}")
                await self._send(request_id, {"kind": "client_tool", **refused})
        finally:
            self._executing.discard(request_id)


async def _output_of(tool: Tool, event: types.ClientToolOpened) -> dict[str, Any]:
    context = ToolContext(event["conversation_id"], event["tool_use_ids"][0])
    try:
        arguments = tool.arguments(event["payload"]["input"], context)
    except ValueError as error:
        return _failed_output(f"The input is not valid: {error}.")
    try:
        output = await call(tool.function, **arguments)
        if dataclasses.is_dataclass(output) and not isinstance(output, type):
            output = dataclasses.asdict(output)
        output = "" if output is None else output
        size = len(json_bytes(output))
    except Exception as error:
        return _failed_output(message_of(error))
    if size > MAX_OUTPUT_BYTES:
        return _failed_output(f"The tool returned {size} bytes, and a result has at most {MAX_OUTPUT_BYTES}.")
    return {"output": output}


def _failed_output(why: str) -> dict[str, Any]:
    return {"output": why[:MAX_MESSAGE_CHARS], "is_error": True}


def _failed(why: str) -> Deny:
    return Deny(f"The approver failed: {why}"[:MAX_MESSAGE_CHARS])
