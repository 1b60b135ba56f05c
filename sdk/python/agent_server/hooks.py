"""Hooks that are functions: they are registered for a session, and the server asks for their answers while it is open."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .calls import call, message_of
from .errors import AgentServerError
from .options import Hook, Options
from .responder import Work
from .transport import Transport, json_bytes

if TYPE_CHECKING:
    from . import types

PREFIX = "query-"
"""The names of programs begin with it. The hooks of other clients are theirs to remove."""
CONNECT_S = 1
"""The time that a program has to connect after it has registered its hooks or lost its stream."""
REMOVE_S = 5
SETTLE_S = 0.05
WATCHING = ("FileChanged", "TaskCompleted", "Notification")
"""The points whose hooks are called in the background."""
MAX_ERROR_CHARS = 10_000


class FunctionHooks:
    def __init__(self, transport: Transport, path: str, options: Options, fail: Callable[[BaseException], None]) -> None:
        self._transport = transport
        self._path = path
        self._fail = fail
        self._client = f"{PREFIX}{uuid.uuid4()}"
        self._hooks: dict[str, Hook] = {}
        self._points: dict[str, list[dict[str, Any]]] = {}
        self._work = Work(fail)
        self._following: asyncio.Task[None] | None = None
        for point, hooks in (options.hooks or {}).items():
            for at, given in enumerate(hooks):
                self._declare(point, f"{point}-{at}", given if isinstance(given, Hook) else Hook(given))

    def _declare(self, point: str, hook_id: str, hook: Hook) -> None:
        self._hooks[hook_id] = hook
        limits = {"timeout": hook.timeout, "on_failure": hook.on_failure}
        group: dict[str, Any] = {"hooks": [{"id": hook_id, **{name: each for name, each in limits.items() if each}}]}
        if hook.matcher is not None:
            group["matcher"] = hook.matcher
        self._points.setdefault(point, []).append(group)

    async def register(self, after: int) -> None:
        if not self._hooks:
            return
        await self._transport.call("PUT", self._own_path, {"hooks": self._points}, repeat=True)
        self._following = asyncio.create_task(self._follow(after))

    async def settle(self) -> None:
        """Returns when the calls in the background have ended."""
        if self._following is None or not any(point in self._points for point in WATCHING):
            return
        # The agent has answered: what is left of its server changes nothing.
        with suppress(AgentServerError):
            while not self._following.done() and await self._calls_waiting() > 0:
                await asyncio.sleep(SETTLE_S)

    async def close(self) -> None:
        if self._following is None:
            return
        self._following.cancel()
        self._work.end(lambda _: True)
        # The server may be about to end, too. The next session there removes what is left.
        with suppress(AgentServerError, asyncio.TimeoutError):
            await asyncio.wait_for(self._transport.call("DELETE", self._own_path, repeat=True), REMOVE_S)

    async def _calls_waiting(self) -> int:
        items = (await self._transport.call("GET", f"{self._path}/client-hooks"))["items"]
        # Servers of older versions do not count them.
        return sum(each.get("calls_waiting", 0) for each in items if each["client"] == self._client)

    @property
    def _own_path(self) -> str:
        return f"{self._path}/client-hooks/{self._client}"

    async def _follow(self, after: int) -> None:
        """Apart from the events of the session: their reader may be slow."""
        query = {"hook_client": self._client, "types": "ConfigUpdate"}
        was_registered = False
        try:
            async for event in self._transport.follow(f"{self._path}/events/stream", query, after):
                if event["type"] == "HookRequest" and event["request_id"] not in self._work:
                    self._work.start(event["request_id"], self._answer(event))
                elif event["type"] == "HookRequestEnded" and event["reason"] != "answered":
                    self._work.end(event["request_id"].__eq__)
                elif event["type"] == "ConfigUpdate" and isinstance(event["changes"].get("client_hooks"), dict):
                    is_registered = self._client in event["changes"]["client_hooks"]
                    if was_registered and not is_registered:
                        raise AgentServerError("client_hooks_not_found", "")
                    was_registered = is_registered
        except AgentServerError as error:
            if error.code == "client_hooks_not_found":
                error = AgentServerError(error.code, "Another client has removed the hooks of this session. Open it again.")
            self._fail(error)

    async def _answer(self, request: Mapping[str, Any]) -> None:
        # By the length of the time and not its end: clocks differ. At its deadline the server gives up, too.
        seconds = (_time(request["deadline"]) - _time(request["timestamp"])).total_seconds()
        try:
            answer = await asyncio.wait_for(self._answer_to(request), seconds)
        except asyncio.TimeoutError:
            return
        path = f"{self._path}/requests/{request['request_id']}"
        try:
            await self._transport.call("POST", path, {"kind": "hook", **answer}, repeat=True)
        except AgentServerError as error:
            if error.status not in (400, 413, 422):
                raise
            await self._transport.call("POST", path, {"kind": "hook", **_failed(error.message)}, repeat=True)

    async def _answer_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """An exception is a failure of the hook."""
        try:
            hook = self._hooks[request["hook_id"]]
            answer = await call(hook.function, {**request["payload"], "hook_event_name": request["hook_point"]})
            if not (answer is None or isinstance(answer, (str, Mapping))):
                # Whoever returns False does not mean that the hook has nothing to say.
                return _failed(f"it returned {answer!r}, and neither a dict, a str nor None")
            body = {"text": answer} if isinstance(answer, str) else {"output": dict(answer or {})}
            json_bytes(body)
            return body
        except asyncio.TimeoutError:
            return _failed("it timed out")
        except Exception as error:
            return _failed(message_of(error))


def _failed(why: str) -> dict[str, Any]:
    return {"error": why[:MAX_ERROR_CHARS] or "it failed"}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


async def remove_left_hooks(transport: Transport, path: str, conversation: types.Conversation) -> None:
    """Those of programs that ended without doing so: each of their calls would wait for nobody, and fail."""
    if not any(each.startswith(PREFIX) for each in conversation.get("client_hooks") or []):
        return
    away = await _names_away(transport, path)
    if not away:
        return
    await asyncio.sleep(CONNECT_S)
    for client in away & await _names_away(transport, path):
        try:
            await transport.call("DELETE", f"{path}/client-hooks/{client}", repeat=True)
        except AgentServerError as error:
            if error.code not in ("forbidden", "client_hooks_not_found"):
                raise


async def _names_away(transport: Transport, path: str) -> set[str]:
    items = (await transport.call("GET", f"{path}/client-hooks"))["items"]
    return {each["client"] for each in items if each["client"].startswith(PREFIX) and not each["connected"]}
