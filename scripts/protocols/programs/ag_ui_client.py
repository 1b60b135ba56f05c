"""The models of AG-UI for Python: they make the requests, and read every event of the server."""

import uuid

import cases
import httpx
from ag_ui.core import Event, Interrupt, ResumeEntry, RunAgentInput, Tool, ToolMessage, UserMessage
from pydantic import TypeAdapter

EVENT = TypeAdapter(Event)
HEADERS = {"authorization": f"Bearer {cases.KEY}", "accept": "text/event-stream"}
TOOLS = [Tool(name="look_up", description="Looks an order up.", parameters={"type": "object"})]


class Page:
    def __init__(self, tools=(), headers=HEADERS) -> None:
        self.thread = str(uuid.uuid4())
        self.tools = list(tools)
        self.headers = headers
        self.messages: list = []
        self.text = ""

    async def run(self, resume=()):
        """Returns the events, of which each has the form of its type."""
        self.text = ""
        body = RunAgentInput(
            thread_id=self.thread,
            run_id=str(uuid.uuid4()),
            state={},
            messages=self.messages,
            tools=self.tools,
            context=[],
            forwarded_props={},
            resume=list(resume) or None,
        )
        events = []
        async with httpx.AsyncClient(timeout=60) as client:
            request = {"json": body.model_dump(by_alias=True, exclude_none=True, mode="json"), "headers": self.headers}
            async with client.stream("POST", f"{cases.URL}/ag-ui/default", **request) as response:
                if response.is_error:
                    await response.aread()
                response.raise_for_status()
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        events.append(EVENT.validate_json(line[5:]))
                        self._show(events[-1])
        assert events[0].type == "RUN_STARTED" and events[-1].type == "RUN_FINISHED", events[-1]
        return events

    async def say(self, text: str):
        self.messages.append(UserMessage(id=str(uuid.uuid4()), content=text))
        return await self.run()

    def _show(self, event) -> None:
        if event.type == "TEXT_MESSAGE_START":
            self.text = ""
        if event.type == "TEXT_MESSAGE_CONTENT":
            self.text += event.delta


async def text() -> None:
    page = Page()
    events = await page.say(cases.SLOWLY)
    assert page.text == cases.WORDS
    assert sum(event.type == "TEXT_MESSAGE_CONTENT" for event in events) > 1
    assert events[-1].outcome.type == "success"


async def tool() -> None:
    page = Page()
    events = await page.say(cases.PLAN)
    assert any(event.type == "TOOL_CALL_RESULT" for event in events)
    assert page.text.startswith("Read: ")


async def decide(approved: bool) -> str:
    page = Page()
    [interrupt] = (await page.say(cases.COMPUTE))[-1].outcome.interrupts
    assert isinstance(interrupt, Interrupt) and cases.COMMAND in interrupt.message
    payload = {"approved": True} if approved else {"approved": False, "message": cases.REASON}
    await page.run([ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)])
    return page.text


async def allow() -> None:
    assert cases.is_read(await decide(True))


async def deny() -> None:
    cases.assert_denied(await decide(False), cases.REASON)


async def function() -> None:
    page = Page(TOOLS)
    [call] = (await page.say(cases.LOOK_UP))[-1].outcome.pending_tool_call_ids
    page.messages.append(ToolMessage(id=str(uuid.uuid4()), tool_call_id=call, content=cases.SHIPPED))
    await page.run()
    assert page.text == f"Read: {cases.SHIPPED}", page.text


async def wrong_key() -> None:
    try:
        await Page(headers={"authorization": f"Bearer {cases.WRONG_KEY}"}).say(cases.HELLO)
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 401
    else:
        raise AssertionError("a wrong key was accepted")


cases.run_cases(
    {"text": text, "tool": tool, "allow": allow, "deny": deny, "function": function, "wrong key": wrong_key}
)
