"""The SDK of A2A for Python: its client by JSON-RPC and by HTTP+JSON."""

import functools

import cases
import httpx
from a2a.client import A2AClientError, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_artifact_text, get_data_parts, new_data_message, new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest, TaskState


async def connect(binding: str, key: str = cases.KEY, streaming: bool = True):
    http = httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60)
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming)
    return await ClientFactory(config).create_from_url(cases.URL)


async def send(client, message):
    """Follows the stream to its end, and returns the task as the server has it then, and the number of events."""
    task, count = None, 0
    async for event in client.send_message(SendMessageRequest(message=message)):
        count += 1
        task = task or (event.task.id if event.HasField("task") else event.status_update.task_id)
    return await client.get_task(GetTaskRequest(id=task)), count


def says(text: str, **more):
    return new_text_message(text, role=Role.ROLE_USER, **more)


def answer_in(task) -> str:
    return "".join(get_artifact_text(each) for each in task.artifacts if each.artifact_id == "answer")


async def text(binding: str) -> None:
    task, count = await send(await connect(binding), says(cases.SLOWLY))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert answer_in(task) == cases.WORDS and count > 2


async def tool(binding: str) -> None:
    task, _ = await send(await connect(binding, streaming=False), says(cases.PLAN))
    assert answer_in(task).startswith("Read: ")


async def decide(binding: str, behavior: str) -> str:
    client = await connect(binding)
    asked, _ = await send(client, says(cases.COMPUTE))
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    [request] = get_data_parts(asked.status.message.parts)
    [call] = request["tool_uses"]
    assert call["input"] == {"command": cases.COMMAND}
    decision = {"tool_use_id": call["tool_use_id"], "input_hash": call["input_hash"], "behavior": behavior}
    if behavior == "deny":
        decision["message"] = cases.REASON
    data = {"request_id": request["request_id"], "kind": request["kind"], "decisions": [decision]}
    task, _ = await send(client, new_data_message(data, role=Role.ROLE_USER, task_id=asked.id))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    return answer_in(task)


async def allow(binding: str) -> None:
    assert cases.is_read(await decide(binding, "allow"))


async def deny(binding: str) -> None:
    cases.assert_denied(await decide(binding, "deny"), cases.REASON)


async def cancel(binding: str) -> None:
    client = await connect(binding)
    async for event in client.send_message(SendMessageRequest(message=says(cases.ENDLESS))):
        task = event.task
        break
    cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    after, _ = await send(client, says(cases.HELLO, context_id=task.context_id))
    assert answer_in(after) == cases.GREETING


async def wrong_key(binding: str) -> None:
    try:
        await send(await connect(binding, cases.WRONG_KEY), says(cases.HELLO))
    except A2AClientError as error:
        assert "401" in str(error) or "key" in str(error), error
    else:
        raise AssertionError("a wrong key was accepted")


ALL = {"text": text, "tool": tool, "allow": allow, "deny": deny, "cancel": cancel, "wrong key": wrong_key}
cases.run_cases(
    {
        f"{binding}: {name}": functools.partial(case, binding)
        for binding in ("JSONRPC", "HTTP+JSON")
        for name, case in ALL.items()
    }
)
