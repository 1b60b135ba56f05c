"""The exception that everything here raises for what a server refused, or what could not be done."""

from __future__ import annotations

from typing import Any


class AgentServerError(Exception):
    """`code` is one of docs/errors.md, or one of the client: `connection_failed`, `unexpected_response`, `invalid_argument`
    (nothing was sent) and `server_lost` (the process that ran the agents has ended). The message says what to do.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        details: dict[str, Any] | None = None,
        retry_after: float = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        """The status of the response; None if there was none."""
        self.details = details or {}
        self.retry_after = retry_after
        """Seconds after which the server wants the request again."""

    def __str__(self) -> str:
        status = "" if self.status is None else f" ({self.status})"
        return f"{self.code}{status}: {self.message}"


def invalid(message: str) -> AgentServerError:
    return AgentServerError("invalid_argument", message)
