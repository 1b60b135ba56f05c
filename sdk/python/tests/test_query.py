"""A query asks an agent, and the program takes part: tools, approvals, questions and hooks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from agent_server import (
    AgentServerError,
    Allow,
    Client,
    Deny,
    Hook,
    Options,
    Outcome,
    PermissionContext,
    ToolContext,
    query,
    run,
    tool,
)


def outputs(outcome: Outcome) -> list[Any]:
    return [event["output"] for event in outcome.events if event["type"] == "ToolResult"]


async def test_events_arrive_in_order_until_the_agent_has_answered() -> None:
    events = [event async for event in query("Say hello.", Options(include_partial_messages=True))]
    stored = [event["seq"] for event in events if "seq" in event]
    assert stored == list(range(1, len(stored) + 1))
    assert events[-1]["type"] == "StatusUpdate" and events[-1]["status"] == "idle"
    text = "".join(event.get("text_delta", "") for event in events if event["type"] == "AssistantDelta")
    assert text == "Hello."


async def test_an_outcome_has_the_answer_and_what_it_took() -> None:
    outcome = await run("Say hello.")
    assert (outcome.final_text, outcome.stop_reason, outcome.steps, outcome.error) == ("Hello.", "completed", 1, None)
    assert outcome.usage["scripted"]["output_tokens"] > 0


async def test_a_run_that_fails_is_an_outcome_with_an_error() -> None:
    outcome = await run("fail")
    assert outcome.stop_reason == "error"
    assert outcome.error and "no such model" in outcome.error.message


async def test_the_answer_can_fit_a_type() -> None:
    @dataclass
    class Report:
        passed: int
        failed: int

    outcome = await run("Report the tests as JSON.", Options(tools=[], output_schema=Report))
    assert Report(**outcome.structured_output) == Report(3, 0)
    again = await run("Again as JSON.", Options(resume=(await run("Say hello.")).session_id, output_schema=Report))
    assert again.structured_output == {"passed": 3, "failed": 0}


async def test_separators_in_a_text_do_not_split_an_event() -> None:
    assert (await run("separators")).final_text == "one\u2028two\u2029three\u0085four"


class TestTools:
    async def test_each_call_of_a_turn_is_executed_once(self) -> None:
        asked: list[tuple[str, str]] = []

        @tool
        def look_up_order(number: str, context: ToolContext) -> dict[str, str]:
            """Returns an order by its number."""
            asked.append((number, context.tool_use_id))
            return {"number": number, "status": "shipped"}

        options = Options(tools=[look_up_order], allowed_tools=["look_up_order"])
        outcome = await run("Where are my orders?", options)
        assert outcome.final_text == "Both have shipped."
        assert [number for number, _ in asked] == ["17", "18"]
        ids = [event["tool_use_id"] for event in outcome.events if event["type"] == "ToolUse"]
        assert [tool_use_id for _, tool_use_id in asked] == ids
        assert [event["is_error"] for event in outcome.events if event["type"] == "ToolResult"] == [False, False]

    async def test_tools_of_two_sessions_work_at_the_same_time(self) -> None:
        both = asyncio.Event()
        begun: list[str] = []

        @tool
        async def look_up_order(number: str) -> str:
            """Returns an order by its number."""
            begun.append(number)
            if len(begun) == 2:
                both.set()
            await both.wait()
            return "shipped"

        options = Options(tools=[look_up_order], allowed_tools=["look_up_order"])
        async with Client() as client:
            outcomes = await asyncio.gather(*(run("Where is my order?", options, client=client) for _ in range(2)))
        assert [outcome.final_text for outcome in outcomes] == ["Order 17 has shipped."] * 2

    async def test_an_exception_is_a_result_that_the_agent_reads(self) -> None:
        @tool
        async def look_up_order(number: str) -> str:
            """Returns an order by its number."""
            raise LookupError(f"no order {number}")

        outcome = await run("order", Options(tools=[look_up_order], allowed_tools=["look_up_order"]))
        (result,) = [event for event in outcome.events if event["type"] == "ToolResult"]
        assert (result["output"], result["is_error"]) == ("no order 17", True)

    async def test_an_input_that_does_not_fit_is_refused_before_the_function_is_called(self) -> None:
        @tool
        def look_up_order(number: str) -> None:
            """Returns an order by its number."""
            pytest.fail("it was called")

        outcome = await run("wrong input", Options(tools=[look_up_order], allowed_tools=["look_up_order"]))
        assert outputs(outcome) == ["The input is not valid: input.number must fit {'type': 'string'}."]


class TestApprovals:
    async def test_a_denied_call_does_not_run_and_the_agent_reads_why(self) -> None:
        asked: list[tuple[str, Any, PermissionContext]] = []

        def decide(name: str, call: Any, context: PermissionContext) -> Deny:
            asked.append((name, call, context))
            return Deny("Not today.")

        outcome = await run("Make a directory.", Options(tools=["Bash"], can_use_tool=decide))
        assert outputs(outcome) == ["The user did not allow this call: Not today."]
        ((name, call, context),) = asked
        assert (name, call, list(context.rules)) == ("Bash", {"command": "mkdir made"}, ["Bash(mkdir made)"])
        assert outcome.final_text == "Done."

    async def test_an_allowed_call_runs_with_the_input_that_was_changed(self) -> None:
        async def decide(name: str, call: Any, context: PermissionContext) -> Allow:
            return Allow(updated_input={"command": "echo changed"})

        outcome = await run("Make a directory.", Options(tools=["Bash"], can_use_tool=decide))
        assert outputs(outcome)[0]["stdout"] == "changed\n"

    async def test_an_approver_that_fails_denies(self) -> None:
        def decide(name: str, call: Any, context: PermissionContext) -> Allow:
            raise RuntimeError("out of order")

        outcome = await run("Make a directory.", Options(tools=["Bash"], can_use_tool=decide))
        assert outputs(outcome) == ["The user did not allow this call: The approver failed: out of order"]

    async def test_a_decision_can_end_the_run(self) -> None:
        def decide(name: str, call: Any, context: PermissionContext) -> Deny:
            return Deny("Stop.", interrupt=True)

        outcome = await run("Make a directory.", Options(tools=["Bash"], can_use_tool=decide))
        assert (outcome.stop_reason, outcome.final_text) == ("paused", "")

    async def test_a_call_that_nobody_decides_ends_the_query_and_waits(self) -> None:
        outcome = await run("Make a directory.", Options(tools=["Bash"], permission_mode="default"))
        assert outcome.stop_reason == "waiting_for_confirmation"
        allowing = Options(resume=outcome.session_id, can_use_tool=lambda name, call, context: Allow())
        assert (await run(None, allowing)).final_text == "Done."

    async def test_questions_are_answered_by_their_text(self) -> None:
        options = Options(
            tools=["AskUserQuestion"],
            answer_questions=lambda questions: {each["question"]: each["options"][1]["label"] for each in questions},
        )
        assert "PostgreSQL" in outputs(await run("Set up the database.", options))[0]

    async def test_a_question_that_is_not_answered_waits(self) -> None:
        options = Options(tools=["AskUserQuestion"], answer_questions=lambda questions: None)
        assert (await run("Set up the database.", options)).stop_reason == "waiting_for_input"

    async def test_an_exception_of_the_function_for_questions_ends_the_query(self) -> None:
        async def answer(questions: object) -> None:
            raise KeyboardInterrupt if questions is None else LookupError("nobody is here")

        with pytest.raises(LookupError, match="nobody is here"):
            await run("Set up the database.", Options(tools=["AskUserQuestion"], answer_questions=answer))


class TestHooks:
    async def test_a_function_sees_calls_and_denies_them(self) -> None:
        seen: list[Any] = []

        def guard(payload: dict[str, Any]) -> dict[str, Any]:
            seen.append((payload["hook_event_name"], payload["tool_input"]))
            decision = {"permissionDecision": "deny", "permissionDecisionReason": "Not on Sundays."}
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

        outcome = await run("Make a directory.", Options(tools=["Bash"], hooks={"PreToolUse": [guard]}))
        assert seen == [("PreToolUse", {"command": "mkdir made"})]
        assert outputs(outcome) == ["A hook denied it: Not on Sundays."]

    async def test_a_matcher_selects_calls_and_a_failure_can_block(self) -> None:
        async def fail(payload: dict[str, Any]) -> None:
            raise RuntimeError("out of order")

        hooks = [Hook(fail, matcher="Read", on_failure="block")]
        assert "made" not in str(outputs(await run("Make a directory.", Options(hooks={"PreToolUse": hooks}))))
        hooks = [Hook(fail, matcher="Bash", on_failure="block")]
        outcome = await run("Make a directory.", Options(tools=["Bash"], hooks={"PreToolUse": hooks}))
        assert "out of order" in outputs(outcome)[0]

    async def test_a_hook_that_returns_false_has_failed(self) -> None:
        hooks = [Hook(lambda payload: False, on_failure="block")]
        outcome = await run("Make a directory.", Options(tools=["Bash"], hooks={"PreToolUse": hooks}))
        assert "it returned False" in str(outputs(outcome))

    async def test_a_function_that_runs_out_of_values_fails_and_holds_nobody(self) -> None:
        hooks = [Hook(lambda payload: next(iter(())), on_failure="block")]
        outcome = await run("Make a directory.", Options(tools=["Bash"], hooks={"PreToolUse": hooks}))
        assert "StopIteration" in str(outputs(outcome))

    async def test_the_hooks_of_a_session_end_with_it(self) -> None:
        async with Client() as client:
            outcome = await run("Say hello.", Options(hooks={"Stop": [lambda payload: None]}), client=client)
            assert not (await client.get_session(outcome.session_id)).get("client_hooks")

    async def test_a_session_waits_at_its_end_for_hooks_in_the_background_unless_it_is_left(self) -> None:
        changed: list[str] = []
        answered = asyncio.Event()

        async def watch(payload: dict[str, Any]) -> None:
            await answered.wait()
            changed.append(payload["file_path"])

        async with Client() as client:
            options = Options(tools=["Write"], hooks={"FileChanged": [watch]})
            async with client.session(options) as session:
                await session.run("Write six notes.")
                answered.set()
            assert len(changed) == 6
            answered.clear()
            async with client.session(options) as session:
                async for event in session.ask("Write six notes."):
                    if event["type"] == "Result":
                        break

    async def test_a_session_ends_with_an_error_if_others_remove_its_hooks(self) -> None:
        async with Client() as client:
            options = Options(tools=["Bash"], hooks={"PreToolUse": [lambda payload: None]})
            async with client.session(options) as session:
                with pytest.raises(AgentServerError) as caught:
                    async for event in session.ask("Work long."):
                        if event["type"] == "ToolUse":
                            path = f"/conversations/{session.id}/client-hooks"
                            (own,) = (await client.call("GET", path))["items"]
                            await client.call("DELETE", f"{path}/{own['client']}")
                assert caught.value.code == "client_hooks_not_found"
            assert (await client.get_session(session.id))["status"] != "running"
