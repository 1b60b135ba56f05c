"""The way to the sessions: a server by its URL, or the one of a data directory of this machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .errors import AgentServerError, invalid
from .local import connect_or_start
from .options import Options
from .session import Session
from .transport import Transport

if TYPE_CHECKING:
    from . import types
    from .session import StreamedEvent


class Client:
    """With `url` a server, and its `key`. Without it the sessions of a data directory of this machine, by default that of
    `agent-server serve`: by the server that runs there, or else by one that is started and ends with the program.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, data_dir: str | os.PathLike[str] | None = None
    ) -> None:
        if url is not None and data_dir is not None:
            raise invalid("data_dir is for sessions of this machine, and url for those of a server. Pass one of them.")
        self.executing: set[str] = set()
        self._data_dir = data_dir
        self._transport = Transport(url, key) if url is not None else None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport:
            await self._transport.close()

    def session(self, options: Options | None = None) -> Session:
        """For `async with`: a new session, or with `resume`, `fork` or `continue_last` one that exists."""
        return Session(self, options or Options())

    async def list_sessions(self, **query: Any) -> AsyncIterator[types.Conversation]:
        """`status`, `q`, `label`, `metadata` and the other parameters of `GET /conversations`; lists for several."""
        async for each in self._items("/conversations", query):
            yield each

    async def get_session(self, session_id: str) -> types.Conversation:
        found: types.Conversation = await self.call("GET", _path(session_id))
        return found

    async def rename_session(self, session_id: str, title: str) -> None:
        await self.call("PUT", f"{_path(session_id)}/config", {"title": title})

    async def set_labels(self, session_id: str, labels: Sequence[str]) -> None:
        """Replaces all its labels, by which `list_sessions(label=[…])` finds it."""
        await self.call("PUT", f"{_path(session_id)}/config", {"labels": list(labels)})

    async def delete_session(self, session_id: str) -> None:
        await self.call("DELETE", _path(session_id))

    async def withdraw_message(self, session_id: str, message_id: str) -> types.WithdrawnMessage:
        """Takes a message back that the agent has not read, and returns it. `message_id`: that of its `UserMessage` event."""
        path = f"{_path(session_id)}/messages/{quote(message_id, safe='')}"
        withdrawn: types.WithdrawnMessage = await self.call("DELETE", path)
        return withdrawn

    async def rewind_files(
        self, session_id: str, message_id: str, *, dry_run: bool = False, force: bool = False
    ) -> types.RewindOutcomeFiles:
        """Restores the files as they were when a message was sent, with `enable_file_checkpointing`; the conversation stays.
        `message_id`: that of its `UserMessage` event. `dry_run` changes nothing. What somebody else has changed since
        is an error with the code `files_changed`, unless `force` replaces it.
        """
        path = _path(session_id)
        message = await self.call("GET", f"{path}/events/{quote(message_id, safe='')}")
        last_seq = (await self.get_session(session_id))["last_seq"]
        body = {"to_seq": message["seq"], "last_seq": last_seq, "files": True, "conversation": False, "force": force}
        outcome = await self.call("POST", f"{path}/rewind", body, query={"dry_run": True} if dry_run else None)
        restored: types.RewindOutcomeFiles = outcome["files"]
        return restored

    async def list_changes(self, session_id: str, **query: Any) -> AsyncIterator[types.FileDiff]:
        """The files that differ, with patches, and the parameters of `GET …/diff`: by default what the last run has changed."""
        async for each in self._items(f"{_path(session_id)}/diff", query):
            yield each

    async def list_models(self) -> AsyncIterator[types.ModelInfo]:
        """The models that the server knows, with their limits and prices."""
        async for each in self._items("/models", {}):
            yield each

    async def list_events(self, session_id: str, **query: Any) -> AsyncIterator[Any]:
        """The stored `types.Event`s, with the parameters of `GET …/events`: `after_seq`, `types`, `order`."""
        async for each in self._items(f"{_path(session_id)}/events", query):
            yield each

    async def follow_events(self, session_id: str, *, after_seq: int = 0, deltas: bool = False) -> AsyncIterator[StreamedEvent]:
        """The stored events after that one, and then each one when it is stored: once and in order, over lost connections and
        restarts of the server. With `deltas` also transient ones. Ends when the session is deleted.
        """
        transport = await self.transport()
        query = {"deltas": True} if deltas else {}
        async for event in transport.follow(f"{_path(session_id)}/events/stream", query, after_seq):
            yield event  # type: ignore[misc]  # The server has checked it.

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Sends any request of docs/api.md. Returns the JSON of the reply, bytes for other content, or None."""
        transport = await self.transport()
        return await transport.call(method, path, body, query=query, idempotency_key=idempotency_key)

    async def transport(self) -> Transport:
        if self._transport is None or self._transport.is_lost:
            if self._transport:
                await self._transport.close()
            self._transport = await connect_or_start(self._data_dir)
        return self._transport

    async def _items(self, path: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        page: str | None = None
        seen: set[str] = set()
        while True:
            found = await self.call("GET", path, query={"limit": 100, **query, "page_id": page})
            for each in found["items"]:
                yield each
            page = found.get("next_page_id")
            if page is None:
                return
            if page in seen:
                raise AgentServerError(
                    "unexpected_response",
                    f"The server returned the page {page!r} of {path} twice. Check the URL of the server and the proxies.",
                )
            seen.add(page)


def _path(session_id: str) -> str:
    if session_id in ("", ".", ".."):
        raise invalid(f"{session_id!r} is not the id of a session.")
    return f"/conversations/{quote(session_id, safe='')}"
