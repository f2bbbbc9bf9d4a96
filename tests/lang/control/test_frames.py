"""A mistake of the user's is shown with the user's frames, whatever lies between them."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import ArgumentError, SimulationError, StagingError

PROGRAM = """\
import numpy as np
import tilewright.cute as cute

@cute.kernel
def body(x: cute.Tensor):
    x[0] = x["a"]

@cute.jit
def host(x: cute.Tensor):
    body(x).launch(grid=1, block=1)

host(np.zeros(4))
"""


@cute.kernel
def wrong_operand(x: cute.Tensor):
    x[0] = x[0] + "text"


@cute.kernel
def wrong_layout(x: cute.Tensor):
    cute.copy(None, x, x)


@cute.kernel
def own_error(x: cute.Tensor):
    {}["key"]


@cute.kernel
def out_of_bounds(x: cute.Tensor, at: cutlass.Int32):
    x[at] = 1.0


@cute.jit
def host(x: cute.Tensor, at: cutlass.Int32, which: cutlass.Constexpr):
    if cutlass.const_expr(which is out_of_bounds):
        which(x, at).launch(grid=1, block=1)
    else:
        which(x).launch(grid=1, block=1)


def frames(error: BaseException) -> list[str]:
    """The functions in the traceback; those of ours with their file."""
    found = traceback.extract_tb(error.__traceback__)
    return [f.name if f.filename == __file__ else os.path.basename(f.filename) for f in found]


CASES = [
    (wrong_operand, StagingError, ["host", "wrong_operand"]),
    (wrong_layout, Exception, ["host", "wrong_layout"]),
    (own_error, KeyError, ["host", "own_error"]),
    (out_of_bounds, SimulationError, []),
]


@pytest.mark.parametrize(("kernel", "kind", "inner"), CASES, ids=lambda case: getattr(case, "name", None))
def test_frames_of_ours_are_left_out(kernel: Any, kind: type[Exception], inner: list[str]) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(kind) as caught:
        host(x, 9, kernel)
    assert frames(caught.value)[1:] == inner
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    with pytest.raises(kind) as caught:
        cute.compile(host, x, 9, kernel)(x, 9)
    assert frames(caught.value)[1:] == inner


def test_bound_calls_and_wrong_arguments() -> None:
    x = np.zeros(4, np.float32)
    compiled = cute.compile(host, x, 0, out_of_bounds)
    with pytest.raises(SimulationError) as caught:
        compiled.bind(x, 9)()
    assert frames(caught.value)[1:] == []
    with pytest.raises(ArgumentError) as refused:
        compiled(x.astype(np.float64), 9)
    assert frames(refused.value)[1:] == []


def test_all_frames_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    with pytest.raises(StagingError) as caught:
        host(np.zeros(4, np.float32), 0, wrong_operand)
    assert len(frames(caught.value)) > 8 and "stage.py" in frames(caught.value)


def test_mistakes_of_ours_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise LookupError("ours")

    broken.__code__ = broken.__code__.replace(co_filename=cute.__file__)
    monkeypatch.setattr("tilewright.lang.launch.specialise.arguments_of", broken)
    with pytest.raises(LookupError) as caught:
        cute.compile(host, np.zeros(4, np.float32), 0, wrong_operand)
    assert "specialise.py" in frames(caught.value)[2:]


def test_a_program_that_ends_by_a_mistake(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    found = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True)
    shown = [line.strip() for line in found.stderr.splitlines() if line.startswith("  File ")]
    lines = [line.partition(", line ")[2] for line in shown if "program.py" in line]
    assert lines == ["12, in <module>", "10, in host", "6, in body"] and len(shown) == 3, found.stderr


def test_pytest_shows_the_users_frames(tmp_path: Any) -> None:
    text = PROGRAM.replace("\nhost(", "\ndef test():\n    host(")
    (tmp_path / "test_program.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", tmp_path]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    shown = [line for line in found.stdout.splitlines() if ".py:" in line and ": in " in line]
    assert [line.partition(": in ")[2] for line in shown] == ["test", "host", "body"], found.stdout
