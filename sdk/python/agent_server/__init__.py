"""Asks agents of an agent-server: queries, tools, hooks, approvals and sessions."""

from . import types
from .client import Client
from .errors import AgentServerError
from .options import Allow, Deny, Hook, Options, PermissionContext
from .outcome import Outcome, RunError
from .query import query, run
from .session import Session, StreamedEvent
from .tools import Tool, ToolContext, tool

__all__ = [
    "AgentServerError",
    "Allow",
    "Client",
    "Deny",
    "Hook",
    "Options",
    "Outcome",
    "PermissionContext",
    "RunError",
    "Session",
    "StreamedEvent",
    "Tool",
    "ToolContext",
    "query",
    "run",
    "tool",
    "types",
]
