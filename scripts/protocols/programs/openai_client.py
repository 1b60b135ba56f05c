"""The client of OpenAI for Python: the Responses API and Chat Completions."""

import json

import cases
from openai import AsyncOpenAI, AuthenticationError


def client_with(key: str) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=key, base_url=f"{cases.URL}/v1", max_retries=0)


openai = client_with(cases.KEY)
MODEL = "default"
APPROVES = {"type": "mcp", "server_label": "agent-server", "server_url": "https://agent-server.invalid"}
SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}}}
FUNCTION = {"type": "function", "name": "look_up", "strict": False, "parameters": SCHEMA}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}


async def responses_text() -> None:
    deltas = []
    async with openai.responses.stream(model=MODEL, input=cases.SLOWLY) as stream:
        async for event in stream:
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = await stream.get_final_response()
    assert final.output_text == "".join(deltas) == cases.WORDS
    assert len(deltas) > 1 and final.status == "completed"
    assert (await openai.responses.retrieve(final.id)).output_text == cases.WORDS


async def responses_tool() -> None:
    response = await openai.responses.create(model=MODEL, input=cases.PLAN)
    assert [item.type for item in response.output] == ["message", "mcp_call", "message"]


async def decide(approve: bool) -> str:
    asked = await openai.responses.create(model=MODEL, input=cases.COMPUTE, tools=[APPROVES])
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    assert json.loads(request.arguments) == {"command": cases.COMMAND}
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    if not approve:
        answer["reason"] = cases.REASON
    response = await openai.responses.create(
        model=MODEL, previous_response_id=asked.id, input=[answer], tools=[APPROVES]
    )
    return response.output_text


async def responses_allow() -> None:
    assert cases.is_read(await decide(True))


async def responses_deny() -> None:
    cases.assert_denied(await decide(False), cases.REASON)


async def responses_function() -> None:
    asked = await openai.responses.create(model=MODEL, input=cases.LOOK_UP, tools=[FUNCTION])
    [call] = [item for item in asked.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": cases.SHIPPED}
    response = await openai.responses.create(
        model=MODEL, previous_response_id=asked.id, input=[output], tools=[FUNCTION]
    )
    assert response.output_text == f"Read: {cases.SHIPPED}"


async def responses_cancel() -> None:
    begun = await openai.responses.create(model=MODEL, input=cases.ENDLESS, background=True)
    assert begun.status == "in_progress"
    assert (await openai.responses.cancel(begun.id)).status == "cancelled"
    after = await openai.responses.create(model=MODEL, previous_response_id=begun.id, input=cases.HELLO)
    assert after.output_text == cases.GREETING


async def chat_text() -> None:
    pieces = []
    messages = [{"role": "user", "content": cases.SLOWLY}]
    async with openai.chat.completions.stream(model=MODEL, messages=messages) as stream:
        async for event in stream:
            if event.type == "content.delta":
                pieces.append(event.delta)
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "".join(pieces) == cases.WORDS
    assert len(pieces) > 1


async def chat_function() -> None:
    messages = [{"role": "user", "content": cases.LOOK_UP}]
    headers = {"X-Conversation-Id": "python-function"}
    asked = await openai.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL], extra_headers=headers)
    message = asked.choices[0].message
    assert asked.choices[0].finish_reason == "tool_calls"
    [call] = message.tool_calls
    messages += [
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": cases.SHIPPED},
    ]
    answer = await openai.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL], extra_headers=headers)
    assert answer.choices[0].message.content == f"Read: {cases.SHIPPED}"


async def wrong_key() -> None:
    client = client_with(cases.WRONG_KEY)
    for ask in (
        lambda: client.responses.create(model=MODEL, input=cases.HELLO),
        lambda: client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": cases.HELLO}]),
    ):
        try:
            await ask()
        except AuthenticationError as error:
            assert error.code == "invalid_api_key", error
        else:
            raise AssertionError("a wrong key was accepted")


cases.run_cases(
    {
        "responses: text": responses_text,
        "responses: tool": responses_tool,
        "responses: allow": responses_allow,
        "responses: deny": responses_deny,
        "responses: function": responses_function,
        "responses: cancel": responses_cancel,
        "chat: text": chat_text,
        "chat: function": chat_function,
        "wrong key": wrong_key,
    }
)
