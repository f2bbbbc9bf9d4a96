"""A user's mistakes: each test says what is written and what the error must say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import tilewright.cute as cute
from tilewright.errors import TilewrightError


@pytest.fixture
def run() -> Callable[..., Any]:
    """``run(kernel, *arrays, block=1, grid=1)`` launches once and gives the first array."""

    def launch(kernel: Any, *args: Any, block: Any = 1, grid: Any = 1) -> Any:
        @cute.jit
        def host(args: tuple):
            kernel(*args).launch(grid=grid, block=block)

        host(args)
        return args[0]

    return launch


@pytest.fixture
def refused() -> Callable[..., str]:
    """``refused(match, call, line=text)``: ``call()`` ends in one Tilewright error that says ``match`` and names the
    line of this file that contains ``text``; no other exception hangs on it."""

    def check(match: str, call: Callable[[], Any], line: str | None = None) -> str:
        with pytest.raises(TilewrightError, match=match) as caught:
            call()
        error = caught.value
        assert error.__cause__ is None, "a foreign traceback is shown"
        assert error.__context__ is None or error.__suppress_context__
        if line is not None:
            file = inspect.stack()[1].filename
            with open(file) as source:
                lines = [i for i, written in enumerate(source, 1) if line in written and "refused(" not in written]
            named = {int(n) for n in re.findall(rf"{re.escape(file)}:(\d+)", str(error))}
            assert named & set(lines), f"{error} names lines {named}, not {lines}"
        return str(error)

    return check
