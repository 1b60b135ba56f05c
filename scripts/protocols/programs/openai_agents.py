"""The Agents SDK of OpenAI for Python: the server is the model of an agent, by either API."""

import cases
from agents import (
    Agent,
    HostedMCPTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, AuthenticationError

set_tracing_disabled(True)
MCP = {"type": "mcp", "server_label": "agent-server", "server_url": "https://agent-server.invalid"}


@function_tool
def look_up(number: str) -> str:
    """Looks an order up."""
    return cases.SHIPPED


def agent_with(api=OpenAIResponsesModel, tools=(), key=cases.KEY) -> Agent:
    client = AsyncOpenAI(api_key=key, base_url=f"{cases.URL}/v1", max_retries=0)
    return Agent(name="remote", model=api(model="default", openai_client=client), tools=list(tools))


async def answer_of(agent: Agent, text: str, **options) -> str:
    """Reads the stream of the run to its end."""
    run = Runner.run_streamed(agent, text, **{"auto_previous_response_id": True, **options})
    async for _ in run.stream_events():
        pass
    return run.final_output


async def responses_text() -> None:
    assert await answer_of(agent_with(), cases.SLOWLY) == cases.WORDS


async def responses_tool() -> None:
    assert "Read: " in await answer_of(agent_with(), cases.PLAN)


async def decide(approve: bool) -> str:
    asked = []

    def on_approval_request(request):
        asked.append(request.data.arguments)
        return {"approve": True} if approve else {"approve": False, "reason": cases.REASON}

    tool = HostedMCPTool(tool_config=MCP, on_approval_request=on_approval_request)
    answer = await answer_of(agent_with(tools=[tool]), cases.COMPUTE)
    assert len(asked) == 1 and cases.COMMAND in asked[0], asked
    return answer


async def responses_allow() -> None:
    assert cases.is_read(await decide(True))


async def responses_deny() -> None:
    cases.assert_denied(await decide(False), cases.REASON)


async def responses_function() -> None:
    assert await answer_of(agent_with(tools=[look_up]), cases.LOOK_UP) == f"Read: {cases.SHIPPED}"


async def responses_function_as_input() -> None:
    agent = agent_with(tools=[look_up])
    answer = await answer_of(agent, cases.LOOK_UP, auto_previous_response_id=False)
    assert answer == f"Read: {cases.SHIPPED}", answer


async def responses_session() -> None:
    """Two runs, of which the second gets the first one as input, and not by its id."""
    agent = agent_with()
    first = await Runner.run(agent, cases.PLAN)
    second = await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": cases.HELLO}])
    assert second.final_output == cases.GREETING, second.final_output


async def chat_text() -> None:
    run = Runner.run_streamed(agent_with(OpenAIChatCompletionsModel), cases.SLOWLY)
    async for _ in run.stream_events():
        pass
    assert run.final_output == cases.WORDS


async def chat_function() -> None:
    result = await Runner.run(agent_with(OpenAIChatCompletionsModel, [look_up]), cases.LOOK_UP)
    assert result.final_output == f"Read: {cases.SHIPPED}"


async def wrong_key() -> None:
    try:
        await Runner.run(agent_with(key=cases.WRONG_KEY), cases.HELLO)
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
        "responses: function, with all items as input": responses_function_as_input,
        "responses: history as input": responses_session,
        "chat: text": chat_text,
        "chat: function": chat_function,
        "wrong key": wrong_key,
    }
)
