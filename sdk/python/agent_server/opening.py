"""Opens a session: a new one, one that is continued, or a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .errors import AgentServerError, invalid
from .hooks import remove_left_hooks
from .options import Options
from .transport import Transport
from .turns import Turns

if TYPE_CHECKING:
    from . import types
    from .client import Client


async def open_session(client: Client, transport: Transport, options: Options) -> tuple[str, bool, Turns]:
    """Returns its id, whether it is new, and where its events begin."""
    original = await _original(client, transport, options)
    _refuse_unused(options, original)
    if original is None:
        return await _create(transport, options), True, Turns("idle", 0)
    changes = options.update_body(transport.is_local)
    session_id = original
    if options.fork:
        session_id = await _copy(transport, f"/conversations/{original}", options)
    path = f"/conversations/{session_id}"
    found: types.Conversation = await transport.call("GET", path)
    await remove_left_hooks(transport, path, found)
    if changes:
        await transport.call("PUT", f"{path}/config", changes, repeat=True)
    await _add_rules(transport, f"{path}/permission-rules", options)
    # A change of the configuration is an event of the program.
    return session_id, False, Turns(found["status"], found["last_seq"])


async def _create(transport: Transport, options: Options) -> str:
    try:
        body = options.create_body(transport.is_local)
        created: types.Conversation = await transport.call("POST", "/conversations", body, keyed=True)
        return created["id"]
    except AgentServerError as error:
        if error.message.startswith("llm_config.model is missing"):
            raise invalid("There is no model. Pass the option model, or set LLM_MODEL for the server.") from error
        raise


def _refuse_unused(options: Options, original: str | None) -> None:
    """A session keeps its id and all its events: only a copy can have another id, or fewer."""
    if options.resume_session_at is not None and not options.fork:
        raise invalid("resume_session_at is the end of a copy, because a session keeps all its events. Pass fork=True, too.")
    if options.session_id is not None and original is not None and not options.fork:
        raise invalid("session_id is the id of a new session, or of a copy. Pass resume alone, or fork=True, too.")


async def _copy(transport: Transport, path: str, options: Options) -> str:
    last = options.resume_session_at
    at_seq = (await transport.call("GET", f"{path}/events/{quote(last, safe='')}"))["seq"] if isinstance(last, str) else last
    given = {"id": options.session_id, "at_seq": at_seq}
    body = {name: value for name, value in given.items() if value is not None}
    made: types.Conversation = await transport.call("POST", f"{path}/fork", body, keyed=True)
    return made["id"]


async def _original(client: Client, transport: Transport, options: Options) -> str | None:
    """None for a new session."""
    copied = options.fork if isinstance(options.fork, str) else None
    if sum(map(bool, (options.resume, copied, options.continue_last))) > 1:
        raise invalid("resume, continue_last and the id in fork each name a session. Pass one of them.")
    if options.continue_last:
        workdir = options.workdir(transport.is_local)
        listed = [each async for each in client.list_sessions()]
        fitting = [each for each in listed if workdir is None or each["workdir"] == workdir]
        if not fitting:
            raise invalid("There is no session to continue. Leave out continue_last.")
        return max(fitting, key=lambda each: each["updated_at"])["id"]
    if options.fork is True and options.resume is None:
        raise invalid("fork=True copies a session. Pass its id as resume, or as fork.")
    return options.resume or copied


async def _add_rules(transport: Transport, path: str, options: Options) -> None:
    """Rules that the session has stay."""
    if options.allowed_tools or options.disallowed_tools:
        rules = await transport.call("GET", path)
        allow, deny = [*rules["allow"], *options.allowed_tools], [*rules["deny"], *options.disallowed_tools]
        body = {"allow": list(dict.fromkeys(allow)), "deny": list(dict.fromkeys(deny)), "ask": rules["ask"]}
        await transport.call("PUT", path, body, repeat=True)


async def read_waiting(client: Client, session_id: str, seq: int) -> list[types.RequestOpened]:
    """What waits since that event or an earlier one. A permission request has only the calls that are not decided."""
    listed: list[types.OpenRequest] = (await client.call("GET", f"/conversations/{session_id}/requests"))["items"]
    # Streams of hooks ask again.
    left: dict[str, Any] = {each["request_id"]: each for each in listed if each["kind"] != "hook"}
    waiting: list[types.RequestOpened] = []
    if not left:
        return waiting
    async for event in client.list_events(session_id, types="RequestOpened", order="desc", before_seq=seq + 1):
        request = left.pop(event["request_id"], None)
        if request and request["kind"] == "permission":
            open_ids = [each["tool_use_id"] for each in request["payload"]["tool_uses"] if "decision" not in each]
            uses = [each for each in event["payload"]["tool_uses"] if each["tool_use_id"] in open_ids]
            event.update(tool_use_ids=open_ids, payload={"tool_uses": uses})
        if request:
            waiting.insert(0, event)
        if not left:
            break
    return waiting
