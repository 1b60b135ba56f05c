"""One session of an agent: messages are asked one after the other, and the program answers what the agent waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import AgentServerError, invalid
from .hooks import FunctionHooks
from .opening import open_session, read_waiting
from .options import Options, PermissionMode
from .outcome import Outcome, outcome_of
from .responder import Responder
from .transport import Transport
from .turns import AT_REST, Background, Turns, has_work

if TYPE_CHECKING:
    from . import types
    from .client import Client

StreamedEvent: TypeAlias = "types.Event | types.AssistantDelta | types.AssistantAborted | types.ToolOutputDelta"
Content: TypeAlias = "str | list[types.UserPart]"

MAX_UNREAD = 100
"""Events that are read ahead of the program."""
STOP_S = 5
"""How long the end of a question waits for the server to stop its run."""
STARTED = {
    "already_running",
    "already_continued",
    "waiting_for_confirmation",
    "waiting_for_input",
    "waiting_for_client",
}
"""A run that another client has started in the meantime is as good."""
END = object()


class Session:
    """Made by `Client.session()`. `async with` opens it; it can be continued by its id."""

    id: str

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._transport: Transport
        self._hooks: FunctionHooks
        self._turns: Turns
        self._is_new = False
        self._posting = 0
        self._failure: BaseException | None = None
        self._broken: BaseException | None = None
        self._is_left = False
        self._queue: asyncio.Queue[Any] | None = None

    async def __aenter__(self) -> Session:
        self._transport = await self._client.transport()
        self.id, self._is_new, self._turns = await open_session(self._client, self._transport, self._options)
        self._hooks = FunctionHooks(self._transport, self._path, self._options, self._break)
        await self._hooks.register(self._turns.seq)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._is_left:
                await self._hooks.settle()
        finally:
            await _uncancelled(self._hooks.close())

    async def run(self, prompt: Content | None = None) -> Outcome:
        """Asks, and returns when the agent has answered or waits. A run that fails is an outcome with `error`."""
        events: list[types.Event] = []
        async with aclosing(self.ask(prompt)) as asked:
            async for event in asked:
                if "seq" in event:
                    events.append(event)
        return outcome_of(events)

    async def ask(self, prompt: Content | None = None) -> AsyncGenerator[StreamedEvent, None]:
        """Yields the events until the agent has answered, or waits for what nothing here answers. Without a prompt the session
        continues where it stopped. To leave the loop stops the run.
        """
        if self._queue is not None:
            raise invalid("The session is being asked. Read its events to the end, or send the message with send().")
        if self._broken:
            raise self._broken
        self._failure = None
        self._is_left = True
        queue = self._queue = asyncio.Queue[Any](MAX_UNREAD)
        pump: asyncio.Task[None] | None = None
        responder = Responder(
            self._options,
            self._answer,
            pause=lambda: self._post("pause", {}),
            fail=self._fail,
            declined=self._nudge,
            executing=self._client.executing,
        )
        background = Background([])
        try:
            waiting = [] if self._turns.seq == 0 else await read_waiting(self._client, self.id, self._turns.seq)
            background = Background(waiting if self._turns.status in AT_REST else [])
            if prompt is None:
                await self._continue(waiting)
            else:
                # The message denies and closes everything else that waits.
                waiting = [event for event in waiting if event["kind"] == "client_tool"]
                # A schema for a session that is continued belongs to its run.
                await self._send(prompt, None if self._is_new else self._options.output_json_schema)
            pump = asyncio.create_task(self._pump(queue))
            for opened in waiting:
                responder.take(opened)
                yield opened
            self._nudge()
            while (event := await queue.get()) is not END:
                if self._failure or isinstance(event, BaseException):
                    raise self._failure or event
                if event is not None:
                    if "seq" in event:
                        self._turns.take(event)
                        background.take(event)
                        responder.take(event)
                    yield event
                if await self._is_over(responder, background):
                    break
            self._is_left = False
        finally:
            self._queue = None
            await _uncancelled(self._end(pump, responder, background))

    async def send(self, content: Content) -> None:
        """Posts a message, also while the agent works: it reads the message at its next step, and the loop of `ask` ends after
        the answer to it.
        """
        await self._send(content, None)

    async def _send(self, content: Content, schema: Mapping[str, Any] | None) -> None:
        message = {"role": "user", "content": content}
        self._posting += 1
        # A message whose response was not awaited may start a run, too.
        before, self._turns.settles_at = self._turns.settles_at, self._turns.seq + 1
        try:
            options = {} if schema is None else {"run_options": {"output_schema": schema}}
            body = {"message": message, "run": True, **options}
            posted = await self._transport.call("POST", f"{self._path}/messages", body, keyed=True)
            self._turns.last_message = max(self._turns.last_message, posted["seq"])
        except AgentServerError:
            self._turns.settles_at = before
            raise
        finally:
            self._posting -= 1
            self._nudge()

    async def interrupt(self) -> None:
        """Ends the active run with its running tool."""
        await self._post("pause", {"interrupt": True})

    async def set_permission_mode(self, mode: PermissionMode) -> None:
        """Holds from the next tool call on."""
        await self._configure({"permission_mode": mode})

    async def set_model(self, model: str) -> None:
        """Holds from the next request to the model on."""
        await self._configure({"llm_config": {"model": model}})

    async def set_mcp_servers(self, servers: Mapping[str, types.McpServerInput]) -> None:
        """From the next turn on, the agent has the tools of these servers, and of no others."""
        await self._configure({"mcp": {"mcpServers": servers}})

    async def get_mcp_status(self) -> list[types.McpServerView]:
        """The MCP servers with their status and their tools."""
        found: types.McpServerList = await self._transport.call("GET", f"{self._path}/mcp")
        return found["items"]

    async def get_context_usage(self) -> types.Context:
        """How full the context window of the model is."""
        return (await self._read())["context"]

    async def get_agent_info(self) -> types.AgentInfo:
        """The model, the tools, the agents, and the slash commands and skills of `setting_sources`."""
        found: types.AgentInfo = await self._transport.call("GET", f"{self._path}/agent-info")
        return found

    async def stop_task(self, task_id: str) -> types.Task | types.StoppedSubagent:
        """Cancels a task that was posted to the session, or stops a subagent in the background by its `agent_id`. Returns what
        it is after its end.
        """
        try:
            task: types.Task = await self._transport.call("DELETE", f"{self._path}/tasks/{task_id}")
            return task
        except AgentServerError as error:
            if error.code != "task_not_found":
                raise
        end: types.StoppedSubagent = await self._transport.call("DELETE", f"{self._path}/subagents/{task_id}")
        return end

    @property
    def seq(self) -> int:
        """That of the last event that was read."""
        return self._turns.seq

    @property
    def _path(self) -> str:
        return f"/conversations/{self.id}"

    async def _continue(self, waiting: Sequence[types.RequestOpened]) -> None:
        """Starts a run without a message, unless one is active or waits."""
        status = self._turns.status
        types_ = "UserMessage,MessageWithdrawn,AssistantMessage,ToolResult"
        query = {"types": types_, "order": "desc", "active": True, "limit": 100}
        newest = (await self._transport.call("GET", f"{self._path}/events", query=query))["items"]
        if not has_work(status, waiting, newest):
            raise invalid(f"There is nothing to continue in session {self.id}: nothing waits. Pass a prompt.")
        only_subagents_ask = any("parent_tool_use_id" in each for each in waiting) and not has_work(status, [], newest)
        if only_subagents_ask or status == "running" or status.startswith("waiting_"):
            return
        schema = self._options.output_json_schema
        body = {"wait": False, "after_seq": self._turns.seq, **({"output_schema": schema} if schema else {})}
        try:
            await self._post("run", body)
        except AgentServerError as error:
            if error.code not in STARTED:
                raise
        self._turns.settles_at = (await self._read())["last_seq"]

    async def _pump(self, queue: asyncio.Queue[Any]) -> None:
        query = {"deltas": True} if self._options.include_partial_messages else {}
        try:
            async for event in self._transport.follow(f"{self._path}/events/stream", query, self._turns.seq):
                await queue.put(event)
            await queue.put(END)
        except Exception as error:
            await queue.put(error)

    async def _is_over(self, responder: Responder, background: Background) -> bool:
        """By the events so far. A run that did not read a message is followed by another one, which has begun by then."""
        if not self._seems_over(responder, background):
            return False
        if not self._turns.may_run_again:
            return True
        found = await self._read()
        is_current = found["status"] != "running" and found["last_seq"] <= self._turns.seq
        return is_current and self._seems_over(responder, background)

    def _seems_over(self, responder: Responder, background: Background) -> bool:
        turns = self._turns
        return (
            not self._posting
            and turns.is_settled
            # Whoever runs the agents of a directory ends: the stream says so next.
            and not (turns.is_cut_off and self._transport.is_local)
            and not self._waits_for_subagents(responder, background)
            and not responder.may_answer(turns.status)
        )

    def _waits_for_subagents(self, responder: Responder, background: Background) -> bool:
        return self._turns.status in AT_REST and background.continues(responder.may_answer)

    async def _end(self, pump: asyncio.Task[None] | None, responder: Responder, background: Background) -> None:
        responder.close()
        if pump is None:
            return
        pump.cancel()
        if self._turns.is_settled and not self._waits_for_subagents(responder, background):
            return
        # The server may be about to end, too.
        with suppress(AgentServerError, asyncio.TimeoutError):
            await asyncio.wait_for(self.interrupt(), STOP_S)

    def _break(self, error: BaseException) -> None:
        """Without its hooks the session is not guarded any more."""
        self._broken = error
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._nudge()

    def _nudge(self) -> None:
        """Lets `ask` look again. A full queue does so anyway."""
        if self._queue is not None and not self._queue.full():
            self._queue.put_nowait(None)

    async def _answer(self, request_id: str, body: Mapping[str, Any]) -> None:
        await self._post(f"requests/{request_id}", body)

    async def _post(self, name: str, body: Mapping[str, Any]) -> None:
        await self._transport.call("POST", f"{self._path}/{name}", body, repeat=True)

    async def _configure(self, changes: Mapping[str, Any]) -> None:
        await self._transport.call("PUT", f"{self._path}/config", changes, repeat=True)

    async def _read(self) -> types.Conversation:
        found: types.Conversation = await self._transport.call("GET", self._path)
        return found


async def _uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """A program that is cancelled still cleans up."""
    await asyncio.shield(asyncio.create_task(work))
