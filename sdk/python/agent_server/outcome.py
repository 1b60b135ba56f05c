"""What a question led to, by the events that were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import invalid
from .turns import STATUS_OF

if TYPE_CHECKING:
    from . import types


@dataclass(frozen=True)
class RunError:
    type: types.ErrorType
    message: str


@dataclass(frozen=True)
class Outcome:
    final_text: str
    """The last answer; empty if the model gave none."""
    structured_output: Any
    """Valid for `output_schema`; None without it, or if the run ended before the answer."""
    stop_reason: str
    """The status if the session waits for somebody else."""
    error: RunError | None
    """Why the run failed, with the stop reason `error`."""
    steps: int
    """Number of model answers."""
    usage: types.UsageByModel
    cost_usd: float | None
    session_id: str
    events: list[types.Event] = field(repr=False)


def outcome_of(events: Sequence[types.Event]) -> Outcome:
    # Subagents have results and errors, too.
    own = [each for each in events if "parent_tool_use_id" not in each]
    results = [each for each in own if each["type"] == "Result"]
    statuses = [each["status"] for each in events if each["type"] == "StatusUpdate"]
    opened = [STATUS_OF.get(each["kind"]) for each in events if each["type"] == "RequestOpened"]
    waiting = statuses[-1] if statuses and statuses[-1].startswith("waiting_") else None
    result = results[-1] if results else None
    stop_reason = waiting or (result["stop_reason"] if result else (opened or [None])[-1])
    if not events or stop_reason is None:
        raise invalid("No run has ended: the session was deleted.")
    errors = [each for each in own if each["type"] == "ErrorEvent"] if stop_reason == "error" else []
    costs = [each["cost_usd"] for each in results if "cost_usd" in each]
    return Outcome(
        final_text=result.get("final_text", "") if result else "",
        structured_output=result.get("structured_output") if result else None,
        stop_reason=stop_reason,
        error=RunError(errors[-1]["error_type"], errors[-1]["message"]) if errors else None,
        steps=sum(each["steps"] for each in results),
        usage=_sum([each["usage"] for each in results]),
        cost_usd=sum(costs) if costs else None,
        session_id=events[0]["conversation_id"],
        events=list(events),
    )


def _sum(usages: Sequence[types.UsageByModel]) -> types.UsageByModel:
    total: dict[str, Any] = {}
    for usage in usages:
        for model, used in usage.items():
            sums = total.setdefault(model, {})
            for name, count in used.items():
                sums[name] = sums.get(name, 0) + count if isinstance(count, (int, float)) else count
    return total
