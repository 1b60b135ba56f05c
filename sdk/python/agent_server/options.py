"""The options of queries and sessions, and how they are written as requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .errors import invalid
from .settings import FIXED_SETTINGS, SETTING_FIELDS, SettingOptions
from .tools import Tool, schema_of

if TYPE_CHECKING:
    from . import types

PermissionMode: TypeAlias = "Literal['default', 'accept_edits', 'plan', 'bypass', 'deny', 'callback']"


@dataclass(frozen=True)
class Allow:
    """`updated_input` runs instead, and the agent is informed. `remember` also allows such calls in the future."""

    updated_input: Mapping[str, Any] | None = None
    remember: bool = False


@dataclass(frozen=True)
class Deny:
    """The agent reads the message. `interrupt` also ends the run."""

    message: str = ""
    remember: bool = False
    interrupt: bool = False


@dataclass(frozen=True)
class PermissionContext:
    session_id: str
    tool_use_id: str
    reason: str
    """Why the call needs a decision."""
    rules: Sequence[str]
    """The rules that `remember` adds; empty if no rule says exactly this."""


Verdict: TypeAlias = "Allow | Deny"
CanUseTool: TypeAlias = "Callable[[str, Any, PermissionContext], Verdict | Awaitable[Verdict]]"
Answers: TypeAlias = "Mapping[str, str | list[str]] | None"
AnswerQuestions: TypeAlias = "Callable[[list[types.AskedQuestion]], Answers | Awaitable[Answers]]"
HookFunction: TypeAlias = "Callable[[dict[str, Any]], Any]"


@dataclass(frozen=True)
class Hook:
    """A function that the server asks at a point of a run. `matcher`: for which calls; `timeout`: seconds until it has failed;
    `on_failure`: what a failure means.
    """

    function: HookFunction
    matcher: str | None = None
    timeout: float | None = None
    on_failure: Literal["continue", "block"] | None = None


@dataclass(frozen=True)
class Options(SettingOptions):
    """An option that is None has the default of the server. By position: only those of this class."""

    provider: str | None = None
    model: str | None = None
    api_key: str | None = None
    base_url: str | None = None
    llm: Mapping[str, Any] | None = None
    """Further fields of `llm_config`, such as `temperature`."""

    resume: str | None = None
    """The id of the session to continue."""
    continue_last: bool = False
    """Continues the session that changed last, of those in `cwd` if that is given."""
    fork: bool | str = False
    """Continues in a copy of that session, or of the one with this id."""
    session_id: str | None = None
    """The id of the new session, or of the copy: a UUID."""
    resume_session_at: str | int | None = None
    """With `fork`, the last event that the copy has: its id, or its seq."""

    cwd: str | Path | None = None
    """The directory of the agent. Default: a new one, which is removed with the session."""
    additional_directories: Sequence[str | Path] | None = None
    """More directories in which the agent may read and change files."""
    setting_sources: Sequence[Literal["user", "project", "local"]] | None = None
    agents: Mapping[str, types.AgentDefinition] | None = None
    mcp_servers: Mapping[str, types.McpServerInput] | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None

    tools: str | Sequence[str | Tool] | None = None
    """A preset, or everything that the agent has: tools of the server by name, and tools of the program."""
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    tool_config: types.ToolConfig | None = None

    permission_mode: PermissionMode | None = None
    """Default: `default` for a new session with `can_use_tool`, otherwise that of the server."""
    can_use_tool: CanUseTool | None = None
    """Decides about each call that waits for a decision. An exception denies."""
    answer_questions: AnswerQuestions | None = None
    """Answers by the text of the question. None: nobody answers, and the session waits."""
    hooks: Mapping[str, Sequence[HookFunction | Hook]] | None = None
    """By the point of a run: `PreToolUse` and the others of docs/hooks.md."""

    output_schema: Mapping[str, Any] | type | None = None
    """A JSON Schema that the final answer fits, or a dataclass or TypedDict."""
    include_partial_messages: bool = False
    """Also transient events, such as text while it is written."""
    conversation: types.CreateConversation | None = None
    """Further fields of `POST /conversations`."""

    @property
    def own_tools(self) -> dict[str, Tool]:
        listed = () if self.tools is None or isinstance(self.tools, str) else self.tools
        return {each.name: each for each in listed if isinstance(each, Tool)}

    @property
    def tool_names(self) -> str | list[str] | None:
        if self.tools is None or isinstance(self.tools, str):
            return self.tools
        return [each for each in self.tools if isinstance(each, str)]

    @property
    def output_json_schema(self) -> Mapping[str, Any] | None:
        schema = self.output_schema
        return schema if schema is None or isinstance(schema, Mapping) else schema_of(schema, "output_schema")

    def workdir(self, is_local: bool) -> str | None:
        """On a server elsewhere, the directory is one of the server."""
        return None if self.cwd is None else _place(self.cwd, is_local)

    def create_body(self, is_local: bool) -> dict[str, Any]:
        return {
            **(self.conversation or {}),
            **self._common(is_local, is_new=True),
            **_given(
                id=self.session_id,
                workdir=self.workdir(is_local),
                tools=self.tool_names,
                allowed_tools=list(self.allowed_tools) or None,
                disallowed_tools=list(self.disallowed_tools) or None,
                setting_sources=self.setting_sources,
                system_prompt=self.system_prompt,
                system_prompt_extensions=self.append_system_prompt and [self.append_system_prompt],
                output_schema=self.output_json_schema,
            ),
        }

    def update_body(self, is_local: bool) -> dict[str, Any]:
        """Raises if an option can only be set for a new session."""
        fixed = ["system_prompt", "append_system_prompt", "setting_sources", "conversation", *FIXED_SETTINGS]
        given = [name for name in fixed if getattr(self, name) is not None] + (["tools"] if self.tool_names else [])
        if given:
            names = ", ".join(given)
            raise invalid(f"{names}: a session keeps what it was created with. Leave it out, or begin a new session.")
        return self._common(is_local, is_new=False)

    def _common(self, is_local: bool, is_new: bool) -> dict[str, Any]:
        llm = {
            **(self.llm or {}),
            **_given(provider=self.provider, model=self.model, api_key=self.api_key, base_url=self.base_url),
        }
        # The approver is this program, which the server asks like a user.
        is_asked = self.can_use_tool is not None
        directories = self.additional_directories
        mode = "default" if is_asked and self.permission_mode == "callback" else self.permission_mode
        return _given(
            **{field: getattr(self, name) for name, field in SETTING_FIELDS.items()},
            additional_directories=None if directories is None else [_place(each, is_local) for each in directories],
            llm_config=llm or None,
            permission_mode=mode or ("default" if is_asked and is_new else None),
            tool_config=self.tool_config,
            mcp=None if self.mcp_servers is None else {"mcpServers": self.mcp_servers},
            agents=self.agents,
            client_tools=[each.declaration for each in self.own_tools.values()] or None,
        )


def _place(path: str | Path, is_local: bool) -> str:
    return str(Path(path).absolute() if is_local else path)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
