"""Sessions have several messages, can be left and continued, and survive their program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

import pytest
from conftest import PATIENCE_S

from agent_server import AgentServerError, Allow, Client, Options, query, run


async def test_messages_are_asked_one_after_the_other() -> None:
    async with Client() as client, client.session() as session:
        assert (await session.run("Say one.")).final_text == "One."
        second = await session.run("Say two.")
        assert second.final_text == "Two."
        assert second.events[0]["seq"] > 1
        assert session.seq == second.events[-1]["seq"]


async def test_a_message_that_is_sent_while_the_agent_works_is_answered_in_the_same_loop() -> None:
    async with Client() as client, client.session(Options(include_partial_messages=True)) as session:
        texts: list[str] = []
        sent = False
        async for event in session.ask("Tell a story."):
            if event["type"] == "AssistantDelta" and not sent:
                sent = True
                await session.send("Say two.")
            if event["type"] == "AssistantMessage":
                texts.append(event["text"])
        assert texts[-1] == "Two." and len(texts) == 2


async def test_a_message_of_another_program_instead_of_an_answer_is_answered_in_the_same_loop() -> None:
    async def never(questions: object) -> None:
        await asyncio.Event().wait()

    options = Options(tools=["AskUserQuestion"], answer_questions=never)
    async with Client() as client, Client() as other, client.session(options) as session:
        reasons: list[str] = []
        async for event in session.ask("Set up the database."):
            if event["type"] == "StatusUpdate" and event["status"] == "waiting_for_input":
                body = {"message": "Say two.", "run": True}
                await (await other.transport()).call("POST", f"/conversations/{session.id}/messages", body, keyed=True)
            if event["type"] == "Result":
                reasons.append(event["stop_reason"])
        assert reasons == ["superseded", "completed"]


async def test_to_leave_the_loop_stops_the_run_and_the_session_goes_on() -> None:
    async with Client() as client, client.session(Options(tools=["Bash"])) as session:
        async with aclosing(session.ask("Work long.")) as events:
            async for event in events:
                if event["type"] == "ToolUse":
                    break
        assert (await client.get_session(session.id))["status"] == "paused"
        outcome = await session.run("Say one.")
        assert outcome.final_text == "One."
        assert [event["type"] for event in outcome.events].count("ToolResult") == 1


async def test_a_run_can_be_interrupted() -> None:
    async with Client() as client, client.session(Options(tools=["Bash"])) as session:
        async for event in session.ask("Work long."):
            if event["type"] == "ToolUse":
                await session.interrupt()
        assert (await client.get_session(session.id))["status"] == "paused"


async def test_a_cancelled_program_stops_its_run() -> None:
    async with Client() as client:
        async with client.session(Options(tools=["Bash"])) as session:
            asking = asyncio.create_task(session.run("Work long."))
            async for event in client.follow_events(session.id):
                if event["type"] == "ToolUse":
                    break
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        assert (await client.get_session(session.id))["status"] == "paused"


async def test_sessions_are_listed_read_copied_and_deleted(own_directory: Path) -> None:
    async with Client() as client:
        first = (await run("Say one.", Options(title="greeting"), client=client)).session_id
        copy = (await run("Say two.", Options(fork=first), client=client)).session_id
        assert {each["id"] async for each in client.list_sessions()} == {first, copy}
        assert (await client.get_session(first)).get("title") == "greeting"
        messages = [each async for each in client.list_events(copy, types="AssistantMessage")]
        assert [each["text"] for each in messages] == ["One.", "Two."]
        assert (await run("Say one.", Options(continue_last=True), client=client)).session_id == copy
        await client.delete_session(first)
        with pytest.raises(AgentServerError) as caught:
            await client.get_session(first)
        assert (caught.value.code, caught.value.status) == ("conversation_deleted", 410)


async def test_a_session_has_more_directories_and_a_message_can_be_withdrawn(tmp_path: Path) -> None:
    async with Client() as client:
        session_id = (await run("Say one.", Options(additional_directories=[tmp_path]), client=client)).session_id
        assert (await client.get_session(session_id)).get("additional_directories") == [str(tmp_path.resolve())]
        await run("Say two.", Options(resume=session_id, additional_directories=[]), client=client)
        assert not (await client.get_session(session_id)).get("additional_directories")
        path = f"/conversations/{session_id}/messages"
        posted = await client.call("POST", path, {"message": "Say three."})
        withdrawn = await client.withdraw_message(session_id, posted["event_id"])
        assert withdrawn.get("message", {}).get("content") == [{"type": "text", "text": "Say three."}]
        with pytest.raises(AgentServerError, match="nothing to continue"):
            await run(None, Options(resume=session_id), client=client)


async def test_a_session_that_was_taken_back_to_a_message_continues_with_it() -> None:
    async with Client() as client:
        said = await run("Say one.", client=client)
        message = next(event["seq"] for event in said.events if event["type"] == "UserMessage")
        last_seq = (await client.get_session(said.session_id))["last_seq"]
        rewind = {"to_seq": message, "last_seq": last_seq}
        await client.call("POST", f"/conversations/{said.session_id}/rewind", rewind)
        assert (await run(None, Options(resume=said.session_id), client=client)).stop_reason == "completed"


async def test_stop_task_cancels_a_task_and_stops_a_subagent_in_the_background() -> None:
    async with Client() as client, client.session(Options(tools=["Bash", "Task"])) as session:
        await session.run("Say one.")
        ticker = {"title": "ticks", "runnable": {"type": "Ticker", "interval": 60, "count": 10}}
        task = await client.call("POST", f"/conversations/{session.id}/tasks", ticker)
        assert (await session.stop_task(task["id"])).get("status") == "cancelled"
        ends = []
        async for event in session.ask("Delegate it."):
            if event["type"] == "SubagentStart":
                ends.append((await session.stop_task(event["agent_id"])).get("stop_reason"))
        assert ends == ["cancelled"]
        with pytest.raises(AgentServerError) as caught:
            await session.stop_task(task["id"].replace("0", "1"))
        assert caught.value.status == 404


async def test_the_models_of_the_server_are_listed_with_their_windows() -> None:
    async with Client() as client:
        assert any(each.get("context_window") for each in [each async for each in client.list_models()])


async def test_a_session_is_found_by_its_labels_and_its_metadata_and_copied_up_to_an_event() -> None:
    async with Client() as client:
        session_id = str(uuid4())
        options = Options(session_id=session_id, title="totals", labels=["a, b"], metadata={"ticket": 17}, env={"STAGE": "x"})
        async with client.session(options) as session:
            first = await session.run("Say one.")
            assert session.id == session_id
            assert (await session.get_context_usage())["used"] > 0
            await session.set_mcp_servers({"broken": {"command": "/nowhere/at-all"}})
            assert [each["name"] for each in await session.get_mcp_status()] == ["broken"]
            model = (await client.get_session(session_id))["llm_config"].get("model")
            assert (await session.get_agent_info())["model"] == model
            await session.run("Say two.")
        await client.rename_session(session_id, "sums")
        await client.set_labels(session_id, ["a, b", "daily"])
        found = [each async for each in client.list_sessions(label=["a, b", "daily"], metadata="ticket=17")]
        assert [(each["id"], each.get("title"), each.get("env")) for each in found] == [(session_id, "sums", {"STAGE": "x"})]
        last = first.events[-1]
        for place in (last["seq"], last["id"]):
            copy_id = str(uuid4())
            async with client.session(Options(fork=session_id, session_id=copy_id, resume_session_at=place)) as copy:
                await copy.run("Say one.")
            asked = [each async for each in client.list_events(copy_id, types="UserMessage")]
            assert len(asked) == 2
        with pytest.raises(AgentServerError, match="Pass fork=True"):
            await run("x", Options(resume=session_id, resume_session_at=3), client=client)
        with pytest.raises(AgentServerError, match="user_id: a session keeps"):
            await run("x", Options(resume=session_id, user_id="another"), client=client)


async def test_there_is_nothing_to_continue_when_the_agent_has_answered() -> None:
    done = await run("Say hello.")
    with pytest.raises(AgentServerError, match="nothing to continue"):
        await run(None, Options(resume=done.session_id))
    with pytest.raises(AgentServerError, match="system_prompt: a session keeps"):
        await run("Say hello.", Options(resume=done.session_id, system_prompt="Be brief."))


PROGRAM = """
import asyncio
from agent_server import Options, query

async def main():
    async for event in query("Make a directory.", Options(tools=["Bash"], can_use_tool=wait)):
        if event["type"] == "SystemInit":
            print(event["conversation_id"], flush=True)

async def wait(name, call, context):
    print("asked", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def pids_of_servers(data_dir: Path) -> list[int]:
    """Of this user, by their environment."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"OPENHANDS_DATA_DIR={data_dir}\0".encode() in (process / "environ").read_bytes():
                command = (process / "cmdline").read_bytes().split(b"\0")
                found.extend([int(process.name)] if b"--stop-with-stdin" in command else [])
        except OSError:
            continue
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="finds the server in /proc")
async def test_a_session_is_resumed_in_another_process_after_its_program_was_killed(own_directory: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout
    session_id, asked = program.stdout.readline().strip(), program.stdout.readline()
    assert asked == "asked\n"
    assert len(pids_of_servers(own_directory)) == 1
    program.send_signal(signal.SIGKILL)
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while pids_of_servers(own_directory):
        assert time.monotonic() < deadline, "the server outlives the program that started it"
        await asyncio.sleep(0.05)

    asked_again: list[str] = []

    def allow(name: str, call: object, context: object) -> Allow:
        asked_again.append(name)
        return Allow()

    events = [event async for event in query(None, Options(resume=session_id, can_use_tool=allow))]
    assert asked_again == ["Bash"]
    assert [event["final_text"] for event in events if event["type"] == "Result"] == ["Done."]


async def test_programs_share_the_server_of_a_directory() -> None:
    async with Client() as client:
        await client.call("GET", "/info")
        code = "import asyncio; from agent_server import run; print(asyncio.run(run('Say one.')).session_id)"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await process.communicate()
        assert not errors
        assert (await client.get_session(output.decode().strip()))["status"] == "idle"


async def test_the_files_go_back_to_when_a_message_was_sent(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    options = Options(cwd=tmp_path, tools=["Bash"], permission_mode="bypass", enable_file_checkpointing=True)
    async with Client() as client, client.session(options) as session:
        await session.run("Write one.")
        second = await session.run("Write two.")
        changes = [change async for change in client.list_changes(session.id)]
        assert [(change["path"], change["status"]) for change in changes] == [("notes.txt", "modified")]
        message = next(event["id"] for event in second.events if event["type"] == "UserMessage")
        plan = await client.rewind_files(session.id, message, dry_run=True)
        assert (plan["changed"], notes.read_text()) == (["notes.txt"], "two\n")
        notes.write_text("mine\n")
        with pytest.raises(AgentServerError) as refused:
            await client.rewind_files(session.id, message)
        assert refused.value.code == "files_changed"
        await client.rewind_files(session.id, message, force=True)
        assert notes.read_text() == "one\n"
