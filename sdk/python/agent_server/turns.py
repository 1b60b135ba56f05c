"""Knows by the events of a session whether its messages have been answered, and which subagents still work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import types

AT_REST = {"idle", "finished"}
"""After these ends the agent has answered, unless a message came that no run has read."""
STATUS_OF = {
    "permission": "waiting_for_confirmation",
    "question": "waiting_for_input",
    "elicitation": "waiting_for_input",
    "client_tool": "waiting_for_client",
}
"""The status of an agent that waits for a request of this kind."""


class Turns:
    """`seq` is that of the newest event."""

    def __init__(self, status: str, seq: int) -> None:
        self.status = status
        self.seq = seq
        self.last_message = 0
        """The newest message that was posted."""
        self.settles_at = 0
        """Nothing is settled before this event is read."""
        self.is_cut_off = False
        """The server has ended the run because it stops."""
        self._started_at = 0
        self._ended_at = 0
        self._subagent_ended_at = 0

    def take(self, event: types.Event) -> None:
        self.seq = event["seq"]
        if event["type"] == "Result" and "background_agent_id" in event:
            self._subagent_ended_at = self.seq
        if event["type"] == "StatusUpdate":
            status = event["status"]
            if status == "running" and self.status != "running":
                self._started_at = self.seq
            if status != "running":
                self._ended_at = self.seq
            self.is_cut_off = status == "paused" and event["reason"] == "server_closing"
            self.status = status

    @property
    def is_settled(self) -> bool:
        """No run is active, and the last message had one."""
        if self.seq < self.settles_at or self.status == "running":
            return False
        return self.last_message == 0 or self._ended_at > self.last_message

    @property
    def may_run_again(self) -> bool:
        """The last message, or end of a subagent, came after the last run began, which may have ended without reading it."""
        return max(self.last_message, self._subagent_ended_at) > self._started_at


class Background:
    """Subagents that work in the background: the end of each starts a run of the main agent."""

    def __init__(self, waiting: Sequence[types.RequestOpened]) -> None:
        self._working: set[str] = set()
        self._asking: dict[str, str] = {}
        for event in waiting:
            if "parent_tool_use_id" in event:
                self._working.add(event["parent_tool_use_id"])
                self.take(event)

    def take(self, event: types.Event) -> None:
        if event["type"] == "SubagentStart" and event.get("background"):
            self._working.add(event["parent_tool_use_id"])
        elif event["type"] == "RequestOpened" and "parent_tool_use_id" in event and event["kind"] in STATUS_OF:
            self._asking.update(dict.fromkeys(event["tool_use_ids"], STATUS_OF[event["kind"]]))
        elif event["type"] == "RequestAnswered" or event["type"] == "RequestClosed":
            # The answer to a question is not the end of its call.
            if event["kind"] == "permission":
                for each in event["tool_use_ids"]:
                    self._asking.pop(each, None)
        elif event["type"] == "ToolResult":
            self._asking.pop(event["tool_use_id"], None)
        elif event["type"] == "Result" and "parent_tool_use_id" in event:
            self._working.discard(event["parent_tool_use_id"])

    def continues(self, may_answer: Callable[[str], bool]) -> bool:
        """False if there are none, or if one waits for what nobody here answers."""
        return bool(self._working) and all(map(may_answer, self._asking.values()))


def has_work(status: str, waiting: Sequence[object], newest_first: Sequence[Any]) -> bool:
    """False if only a message can continue the session. `newest_first`: its messages and results of tools."""
    if waiting or status not in AT_REST:
        return True
    own = [event for event in newest_first if "parent_tool_use_id" not in event]
    answer = next((event for event in own if event["type"] == "AssistantMessage"), None)
    read_through = answer.get("read_through", answer["seq"]) if answer else 0
    withdrawn = {event["message_seq"] for event in own if event["type"] == "MessageWithdrawn"}
    messages = [event["seq"] for event in own if event["type"] == "UserMessage"]
    if any(seq > read_through and seq not in withdrawn for seq in messages):
        return True
    return status == "idle" and bool(own) and own[0]["type"] == "ToolResult"
