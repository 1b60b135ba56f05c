"""Streams and requests survive lost connections and restarts of a server; errors say what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import BIN, KEY, Server

from agent_server import AgentServerError, Client, Options, run, transport
from agent_server.local import stop_servers
from agent_server.transport import SseDecoder


class CutProxy:
    """Forwards connections to a port, cuts all of them, and loses the next `lost_answers` answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.lost_answers = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> CutProxy:
        self._listener = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, there = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there}
        await asyncio.gather(self._pipe(reader, there), self._pipe(upstream, writer, is_answer=True))
        self._writers -= {writer, there}

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if is_answer and self.lost_answers > 0:
                    self.lost_answers -= 1
                    writer.transport.abort()
                writer.write(data)
        writer.close()


@asynccontextmanager
async def replying(reply: bytes | None) -> AsyncIterator[str]:
    """A server with the same reply to each request, or with none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                if reply is not None:
                    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(reply)}\r\n\r\n"
                    writer.write(head.encode() + reply)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


async def test_a_request_without_a_reply_ends_and_one_that_waits_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_REPLY_S", 0.2)
    async with replying(None) as url, Client(url) as client:
        waiting = [
            asyncio.create_task(client.call("POST", path, body, query=query))
            for path, body, query in (
                ("/conversations/a/run", {"wait": True}, None),
                ("/conversations/a/commands", {"command": "make"}, None),
                ("/conversations/a/commands/b/output", None, {"wait": 30}),
                ("/conversations/a/commands/b/output?wait=30", None, None),
            )
        ]
        for method in ("GET", "PUT", "POST"):
            with pytest.raises(AgentServerError, match="There was no complete response") as refused:
                await client.call(method, "/conversations/a", None if method == "GET" else {"wait": False})
            assert refused.value.code == "connection_failed"
        assert not any(each.done() for each in waiting)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)


async def test_a_list_whose_page_comes_again_is_an_error() -> None:
    async with replying(b'{"items": [{"id": "a"}], "next_page_id": "again"}') as url, Client(url) as client:
        with pytest.raises(AgentServerError, match="the page 'again' of /conversations twice") as refused:
            async for _ in client.list_sessions():
                pass
        assert refused.value.code == "unexpected_response"


def assert_complete(events: list[Any]) -> None:
    seqs = [event["seq"] for event in events]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_a_query_loses_and_doubles_no_event_when_its_connections_are_cut(server: Server) -> None:
    async with CutProxy(server.port) as proxy, Client(proxy.url, KEY) as client:
        cuts: list[str] = []
        events: list[Any] = []
        async with client.session(Options(tools=["Bash"], include_partial_messages=True)) as session:
            for prompt in ("Which files are here?", "Tell a saga.", "Say one."):
                async for event in session.ask(prompt):
                    if "seq" in event:
                        events.append(event)
                    if event["type"] == "AssistantDelta" and "saga" in prompt and "AssistantDelta" in cuts:
                        # The stream has come back in the middle of the text.
                        await session.interrupt()
                    elif event["type"] in ("UserMessage", "ToolUse") or "saga" in prompt:
                        proxy.cut()
                        cuts.append(event["type"])
        assert {"UserMessage", "ToolUse", "AssistantDelta"} <= set(cuts)
        assert_complete(events)
        answers = [event["text"] for event in events if event["type"] == "AssistantMessage"]
        assert answers[-1] == "One."


async def test_a_stream_continues_after_the_server_was_killed(server: Server) -> None:
    async with Client(server.url, KEY) as client:
        session_id = (await run("Say one.", client=client)).session_id
        stored = [event async for event in client.list_events(session_id)]
        events: list[Any] = []
        async for event in client.follow_events(session_id):
            events.append(event)
            if len(events) == len(stored):
                server.kill()
                server.start()
                await client.call("POST", f"/conversations/{session_id}/events", {"name": "after"}, idempotency_key="one")
            if event["type"] == "ClientEvent":
                break
        assert_complete(events)
        async for event in client.follow_events(session_id, after_seq=events[-2]["seq"]):
            assert event == events[-1]
            break
        await client.delete_session(session_id)


async def test_a_stream_ends_when_the_session_is_deleted(server: Server) -> None:
    async with Client(server.url, KEY) as client:
        session_id = (await run("Say one.", client=client)).session_id
        async for event in client.follow_events(session_id):
            if event["type"] == "Result":
                await client.delete_session(session_id)


async def test_a_request_with_the_same_key_is_executed_once(server: Server) -> None:
    async with Client(server.url, KEY) as client:
        made = [await client.call("POST", "/conversations", {}, idempotency_key="job-17") for _ in range(2)]
        assert made[0]["id"] == made[1]["id"]


async def test_a_message_whose_answer_was_lost_is_stored_once(server: Server) -> None:
    async with CutProxy(server.port) as proxy, Client(proxy.url, KEY) as client:
        transport = await client.transport()
        proxy.lost_answers = 1
        made: Any = await transport.call("POST", "/conversations", {"initial_message": "first"}, keyed=True)
        for message in ({"message": "second"}, {"message": "third", "client_message_id": "m-3"}):
            proxy.lost_answers = 2
            await transport.call("POST", f"/conversations/{made['id']}/messages", message, keyed=True)
        events: list[Any] = [event async for event in client.list_events(made["id"], types=["UserMessage"])]
        assert [event["content"][0]["text"] for event in events] == ["first", "second", "third"]


async def test_errors_have_the_code_the_status_and_what_to_do(server: Server) -> None:
    async with Client(server.url, "another-key") as client:
        with pytest.raises(AgentServerError) as caught:
            await run("Say hello.", client=client)
        assert (caught.value.code, caught.value.status) == ("unauthorized", 401)
        assert "key" in str(caught.value)
    async with Client(server.url, KEY) as client:
        with pytest.raises(AgentServerError) as caught:
            await run("Say hello.", Options(max_steps=0), client=client)
        assert (caught.value.code, caught.value.status) == ("invalid_request", 400)
        assert "max_iteration_per_run" in caught.value.message


async def test_nothing_is_sent_to_what_is_not_a_server(unused_port: int) -> None:
    for url in ("localhost:8000", "ftp://localhost", "http://localhost?a=1", "http://user:word@localhost"):
        with pytest.raises(AgentServerError) as caught:
            Client(url)
        assert caught.value.code == "invalid_argument"


async def test_the_loss_of_the_server_of_a_directory_ends_a_query(own_directory: Path) -> None:
    async with Client() as client:
        session = client.session(Options(tools=["Bash"]))
        with pytest.raises(AgentServerError) as caught:
            async with session:
                async for event in session.ask("Work long."):
                    if event["type"] == "ToolUse":
                        await asyncio.to_thread(stop_servers)
        assert caught.value.code == "server_lost"
        assert (await run("Say one.", Options(resume=session.id), client=client)).final_text == "One."


async def test_a_server_that_cannot_be_started_says_why(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_SERVER_BIN", "/nowhere/agent-server")
    with pytest.raises(AgentServerError, match="AGENT_SERVER_BIN is /nowhere/agent-server, which is not an executable"):
        await run("Say hello.")
    monkeypatch.setenv("AGENT_SERVER_BIN", BIN)
    monkeypatch.setenv("OPENHANDS_DATA_DIR", "/dev/null/data")
    with pytest.raises(AgentServerError, match=r"could not be started:\n.*/dev/null/data"):
        await run("Say hello.")


def _reply(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *headers, "connection: close"]
    return "\r\n".join([*head, "", ""]).encode() + body


_DEEP = b'{"type":' * 200_000
_STREAM = "text/event-stream"


@pytest.mark.parametrize(
    "reply",
    [
        _reply(b"<html>"),
        _reply(_DEEP),
        _reply(_DEEP, status="500 Broken"),
        _reply(b'{"error": {}, "message": []}', "retry-after: \u00b2", status="400 Bad"),
        _reply(b"", "location: http://127.0.0.1:9/", status="307 Elsewhere"),
        _reply(b"data: " + _DEEP + b"\n\n", kind=_STREAM),
        _reply(b'data: {"type": "error"}\n\n', kind=_STREAM),
    ],
)
async def test_what_is_not_from_an_agent_server_is_an_error_of_this_package(reply: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listener, Client(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", KEY) as client:
        with pytest.raises(AgentServerError):
            if _STREAM.encode() in reply:
                async for _ in client.follow_events("1"):
                    pass
            else:
                await client.call("POST", "/conversations", {})


def test_ids_that_are_no_numbers_and_bytes_that_are_no_text_are_read() -> None:
    stream = b'id: \xff\xb2\ndata: {"type": "A"}\n\n' + b"id: " + b"9" * 5000 + b'\ndata: {"type": "B"}\n\n'
    assert [data for _, data in SseDecoder().push(stream)] == [{"type": "A"}, {"type": "B"}]


def test_frames_are_read_from_pieces_of_any_size() -> None:
    stream = ': open\r\nid: 7\r\ndata: {"type":\r\ndata: "A\u2028"}\r\n\r\nid: 8\ndata: {"type": "B"}\n\nretry: 5\n'.encode()
    for size in (1, 3, len(stream)):
        decoder = SseDecoder()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        frames = [frame for piece in pieces for frame in decoder.push(piece)]
        assert frames == [("7", {"type": "A\u2028"}), ("8", {"type": "B"})]
