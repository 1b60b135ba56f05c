"""Calls functions of the program: those that are not `async` run in a thread, so that the event loop goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*args, **options)
    result = await asyncio.to_thread(_in_thread, function, *args, **options)
    return await result if inspect.isawaitable(result) else result


def _in_thread(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    try:
        return function(*args, **options)
    except StopIteration as error:
        # No future can have it: until Python 3.12 the caller would wait forever.
        raise RuntimeError("StopIteration") from error


def message_of(error: BaseException) -> str:
    return str(error) or type(error).__name__
