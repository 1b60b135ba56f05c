"""Sends requests, repeats those that may be repeated, and follows event streams over lost connections."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from .errors import AgentServerError, invalid

MAX_RETRIES = 5
MAX_DELAY_S = 8.0
GIVE_UP_AFTER_S = 5 * 60
"""How long the server of a stream may be unreachable."""
MAX_REPLY_S = 300
"""How long a reply may take that waits for nothing. Creating a session can start programs, and copying one copies files."""
MAX_SILENCE_S = 45
"""A server sends at least a comment every 15 seconds."""
MAX_EVENT_BYTES = 64 * 1024 * 1024
MAX_QUOTE = 200
MAX_DIGITS = 16
FINAL = {"unexpected_response", "invalid_argument", "server_lost"}


class Transport:
    """`socket`: the path of the socket of a server on this machine, which does not come back when it is gone."""

    def __init__(self, url: str, key: str | None, socket: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise invalid(f"url must be an http or https URL without a query, and it is {url!r}.")
        if parts.username or parts.password:
            raise invalid("url must not have a user or a password. Pass the key as key.")
        if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key):
            raise invalid("key has a character that cannot be sent in an HTTP header.")
        self.is_local = socket is not None
        self.is_lost = False
        self._url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            headers={} if key is None else {"authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(None, connect=30),
            limits=httpx.Limits(max_connections=None),
            transport=httpx.AsyncHTTPTransport(uds=socket, limits=httpx.Limits(max_connections=None)) if socket else None,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        keyed: bool = False,
        repeat: bool = False,
    ) -> Any:
        """Returns the JSON of the reply; bytes for other content, None for none. `keyed`: the route takes an idempotency key.
        `repeat`: the same request does the same, or nothing, a second time.
        """
        headers = {}
        if keyed or idempotency_key:
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        content = None
        if isinstance(body, bytes):
            content = body
        elif body is not None:
            headers["content-type"] = "application/json"
            content = json_bytes(body)
        silence = None if _may_wait(path, body, query) else MAX_REPLY_S
        may_repeat = repeat or bool(keyed or idempotency_key) or method in ("GET", "HEAD")
        for failures in range(1, MAX_RETRIES + 2):
            try:
                return await self._send(method, path, headers, content, query, silence)
            except AgentServerError as error:
                if failures > MAX_RETRIES or not self._may_repeat(error, may_repeat, failures):
                    raise
                await asyncio.sleep(delay_after(failures, error.retry_after))
        raise AssertionError("the loop returns or raises")

    async def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: bytes | None,
        query: Mapping[str, Any] | None,
        silence: float | None,
    ) -> Any:
        try:
            timeout = httpx.Timeout(None, connect=30, read=silence)
            response = await self._http.request(
                method, self._url + path, headers=headers, content=content, params=_flat(query), timeout=timeout
            )
        except httpx.HTTPError as error:
            raise self._lost(error) from error
        await self._check(response)
        if response.headers.get("content-type", "").startswith("application/json"):
            try:
                return response.json()
            except (ValueError, RecursionError):
                raise AgentServerError(
                    "unexpected_response", "The response is not JSON. Check the URL of the server and the proxies."
                ) from None
        return response.content or None

    def _lost(self, error: httpx.HTTPError) -> AgentServerError:
        if self.is_local and isinstance(error, httpx.ConnectError):
            return self._server_lost()
        why = str(error) or type(error).__name__
        return AgentServerError(
            "connection_failed",
            f"There was no complete response from {self._url} ({why}). Check that the server is running and can be reached.",
        )

    def _server_lost(self) -> AgentServerError:
        self.is_lost = True
        return AgentServerError(
            "server_lost",
            "The process that ran the agents of this data directory has ended. Continue the session with its id as resume.",
        )

    async def _check(self, response: httpx.Response) -> None:
        if response.is_success or response.status_code == 304:
            return
        if self.is_local and response.status_code == 401:
            raise self._server_lost()  # Another server has taken its place.
        await response.aread()
        retry_after = response.headers.get("retry-after", "")
        seconds = float(_integer(retry_after) or 0)
        status = response.status_code
        try:
            body = response.json()
            code, message, details = body["error"], body["message"], body.get("details")
            if not (isinstance(code, str) and isinstance(message, str) and isinstance(details, (dict, type(None)))):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            start = " ".join(response.text.split())[:MAX_QUOTE]
            raise AgentServerError(
                "unexpected_response",
                f"The response is not from an agent-server (status {status}). Check the URL of the server and the proxies. "
                f"It begins with: {start}",
                status=status,
                retry_after=seconds,
            ) from None
        raise AgentServerError(code, message, status=status, details=details, retry_after=seconds)

    @staticmethod
    def _may_repeat(error: AgentServerError, may_repeat: bool, failures: int) -> bool:
        if error.code == "unavailable":
            return True  # The server has done nothing.
        if isinstance(error.__cause__, httpx.ReadTimeout):
            return False  # It would take as long again.
        if error.code == "connection_failed":
            return may_repeat or isinstance(error.__cause__, httpx.ConnectError)
        if error.code == "unexpected_response" and error.status in (502, 503, 504):
            return may_repeat
        if error.code == "idempotency_in_flight":
            return failures > 1  # It is our own first request, whose response was lost.
        return error.status == 429 and error.retry_after <= MAX_DELAY_S

    async def follow(self, path: str, query: Mapping[str, Any], after: int | None) -> AsyncIterator[dict[str, Any]]:
        """Yields each stored event once and in order, and the transient ones. Returns when the conversation is deleted."""
        cursor = after
        has_connected = False
        failures = 0
        since = time.monotonic()
        while True:
            opened_at: float | None = None
            try:
                async for event_id, data in self._connection(path, query, cursor):
                    if opened_at is None:
                        opened_at, has_connected = time.monotonic(), True
                    if data is None:
                        continue
                    failures, since = 0, time.monotonic()
                    if data["type"] == "deleted":
                        return
                    _raise_end(data)
                    seq = data.get("seq")
                    if isinstance(seq, int) and cursor is not None and seq <= cursor:
                        continue
                    if (stored := _integer(event_id)) is not None:
                        cursor = stored
                    yield data
                reason = AgentServerError("connection_failed", "The connection of the stream ended.")
            except AgentServerError as error:
                if has_connected and error.status in (404, 410) and error.code != "client_hooks_not_found":
                    return
                is_temporary = (
                    error.code not in FINAL if error.status is None else error.status >= 500 or error.status in (408, 429)
                )
                if not is_temporary or (not has_connected and failures >= MAX_RETRIES):
                    raise
                reason = error
            now = time.monotonic()
            if opened_at is not None and now - opened_at > MAX_DELAY_S:
                failures, since = 0, now
            failures += 1
            if now - since > GIVE_UP_AFTER_S:
                raise reason
            await asyncio.sleep(delay_after(failures, reason.retry_after))

    async def _connection(
        self, path: str, query: Mapping[str, Any], cursor: int | None
    ) -> AsyncIterator[tuple[str, dict[str, Any] | None]]:
        """The id and the data of each frame of one connection; at first one without data, when it has opened."""
        headers = {"accept": "text/event-stream, application/json"}
        if cursor is not None:
            headers["last-event-id"] = str(cursor)
        timeout = httpx.Timeout(MAX_SILENCE_S, pool=None)
        url = self._url + path
        try:
            async with self._http.stream("GET", url, params=_flat(query), headers=headers, timeout=timeout) as response:
                await self._check(response)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise AgentServerError(
                        "unexpected_response", "The response is not an event stream. Check the URL and the proxies."
                    )
                yield "", None
                decoder = SseDecoder()
                async for piece in response.aiter_bytes():
                    for frame in decoder.push(piece):
                        yield frame
        except httpx.HTTPError as error:
            raise self._lost(error) from error


class SseDecoder:
    """Splits bytes at line ends only: the text of an event may have other separators, such as U+2028."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # Of a line that has not ended.
        self._rest_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""

    def push(self, piece: bytes) -> list[tuple[str, dict[str, Any] | None]]:
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self._rest_size = [], 0
        self._rest.append(rest)
        self._rest_size += len(rest)
        frames = [frame for line in lines if (frame := self._take(line.removesuffix(b"\r")))]
        if self._size + self._rest_size > MAX_EVENT_BYTES:
            raise AgentServerError("unexpected_response", "The stream has an event that is too large.")
        return frames

    def _take(self, line: bytes) -> tuple[str, dict[str, Any] | None] | None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"id":
            self._id = value.decode("utf8", "replace")
        elif not line and self._data:
            text = b"\n".join(self._data)
            self._data, self._size = [], 0
            try:
                data = json.loads(text)
            except (ValueError, RecursionError):
                raise AgentServerError("unexpected_response", "The stream has an event that is not JSON.") from None
            return self._id, data if isinstance(data, dict) and "type" in data else None
        return None


def json_bytes(value: object) -> bytes:
    """In ASCII: a lone half of a surrogate pair cannot be sent in another way. Raises for what is not JSON."""
    return json.dumps(value, allow_nan=False).encode()


def delay_after(failures: int, retry_after: float = 0) -> float:
    backoff: float = min(0.25 * 2 ** (failures - 1), MAX_DELAY_S) * (0.5 + random.random() / 2)
    return min(max(backoff, retry_after), MAX_DELAY_S)


def _raise_end(data: Mapping[str, Any]) -> None:
    """After these frames the server ends the stream."""
    if data["type"] == "server_closing":
        raise AgentServerError("unavailable", "The server is stopping.")
    if data["type"] == "lagged":
        raise AgentServerError("connection_failed", "The stream was read too slowly, and the server ended it.")
    if data["type"] == "error":
        code, message = data.get("error"), data.get("message")
        if not (isinstance(code, str) and isinstance(message, str)):
            raise AgentServerError("unexpected_response", "The stream has an error without a code.")
        raise AgentServerError(code, message, details=data.get("details"))


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def _may_wait(path: str, body: object, query: Mapping[str, Any] | None) -> bool:
    """For a run, a command, a model or copies of files. Streams are read as long as they last."""
    given = [each for each in (body, query) if isinstance(each, Mapping)]
    route, _, written = path.partition("?")
    is_asked = any(each.get("wait") for each in given) or "wait=" in written
    return is_asked or route.endswith(("/commands", "/compact", "/fork", "/stream"))


def _flat(query: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Each item of a list is a parameter: a text can have commas."""
    return {name: [_text(each) for each in _listed(value) if each is not None] for name, value in (query or {}).items()}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
