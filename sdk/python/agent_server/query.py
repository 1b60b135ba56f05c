"""`query()` and `run()`: one question to an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from .client import Client
from .options import Options
from .outcome import Outcome
from .session import Content, Session, StreamedEvent


async def query(
    prompt: Content | None = None, options: Options | None = None, *, client: Client | None = None
) -> AsyncGenerator[StreamedEvent, None]:
    """Yields the events of the session while the agent works. Without a prompt, the session of `resume` continues."""
    async with _session(options, client) as session, aclosing(session.ask(prompt)) as events:
        async for event in events:
            yield event


async def run(prompt: Content | None = None, options: Options | None = None, *, client: Client | None = None) -> Outcome:
    """A query until its end. Raises `AgentServerError` if the agent could not be asked."""
    async with _session(options, client) as session:
        return await session.run(prompt)


@asynccontextmanager
async def _session(options: Options | None, client: Client | None) -> AsyncIterator[Session]:
    if client:
        async with client.session(options) as session:
            yield session
    else:
        async with Client() as own, own.session(options) as session:
            yield session
