"""Calls functions of the program: those that are not `async` run in a thread, so that the event loop goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*args, **options)
    result = await asyncio.to_thread(function, *args, **options)
    return await result if inspect.isawaitable(result) else result


def message_of(error: BaseException) -> str:
    return str(error) or type(error).__name__
