"""Functions, classes and modules compared as a whole, beside the walk that reads each: the same in all that shows."""

from __future__ import annotations

import linecache
import types
from typing import Any

import pytest

import tilewright.cute as cute
from tests.lang.control.holder_programs import LANES, staged
from tilewright.errors import StagingError
from tilewright.lang.staging import aliases, region_state

HEAD = """
import types
G = 1
M = types.ModuleType("made")
M.x = 1

def reads(k=3, *, w=4):
    return G + k + w

def other():
    return 9

def closure(v):
    def inside():
        return v
    return inside

def rebind():
    global G
    G = 5

def rename():
    M.z = M.x
    del M.x

class Base:
    b = 1

class Other:
    b = 2

class C(Base):
    x = 1
    y = [1]
    def f(self):
        return reads()
    @staticmethod
    def s():
        return G

class Flagged:
    marked = False
    def __init__(self):
        self.x = 1

@cute.jit
def marked():
    return 1

def touch():
    return C().f() + M.x

"""
BETWEEN = "C.x = 8; H = touch(); rebind(); M.x = 9"
"""Outside of regions everything may change."""
CHANGES = [
    ("H = reads", "rebind()", "H()", True),
    ("H = touch", "rebind()", "H()", True),
    ("H = touch", "C.f = other", "H()", True),
    ("H = reads", "H.__defaults__ = (7,)", "H()", True),
    ("H = reads", "H.__kwdefaults__ = {'w': 7}", "H()", True),
    ("H = reads", "H.__kwdefaults__['w'] = 7", "H()", True),
    ("H = reads", "H.__code__ = other.__code__", "H()", True),
    ("H = closure(3)", "H.__closure__[0].cell_contents = 5", "H()", True),
    ("H = reads; H.mark = 1", "H.mark = n", "H.mark", False),
    ("H = touch; reads.mark = 1", "reads.mark = n", "reads.mark", False),
    ("H = reads; H.mark = 1", "H.__dict__ = {'mark': n}", "H.mark", False),
    ("H = reads", "H.mark = 1", "0", True),
    ("H = C", "H.x = 5", "H.x", True),
    ("H = C()", "C.x = 5", "H.x", True),
    ("H = touch", "M.x = 5", "H()", True),
    ("H = M", "H.z = 5", "0", True),
    ("H = C", "H.z = 5", "0", True),
    ("H = M", "rename()", "0", True),
    ("H = marked", "H.function = other", "0", True),
    ("H = Flagged()", "H.x += 1", "H.x", False),
    ("H = C", "del H.x", "0", True),
    ("H = C", "H.z = H.x; del H.x", "0", True),
    ("H = C", "H.__bases__ = (Other,)", "H.b", True),
    ("H = C", "Base.b = 4", "H.b", True),
    ("H = C", "H.y[0] = n", "H.y[0]", False),
    ("H = C", "H.y.append(1)", "0", True),
    ("H = C", "H.s = staticmethod(other)", "0", True),
    ("H = C().f", "rebind()", "H()", True),
    ("C.x = 7; M.x = 7", "touch()", "C.x + touch()", False),
    (
        "C.x = 7",
        "0\n    C.x = 8; H = touch(); rebind(); M.x = 9\n    if n > 1:\n        touch()",
        "C.x + touch()",
        False,
    ),
]
"""How it is made, what a region does, what reads it, and whether that is refused."""


def outcome(made: str, change: str, read: str) -> Any:
    lines = ["def program(n):", *(f"    {line}" for line in made.split("; ")), "    if n > 2:"]
    text = "\n".join([*HEAD.splitlines(), *lines, f"        {change}", f"    return {read},", ""])
    file = f"<lasting {made} {change}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)

    def fresh() -> Any:
        scope: dict[str, Any] = {"__name__": "lasting_program", "types": types, "cute": cute}
        exec(compile(text, file, "exec"), scope)
        return scope["program"]

    try:
        found = staged(fresh())
    except StagingError as error:
        return str(error)
    assert found == [tuple(map(float, fresh()(n))) for n in LANES], "Python's own answer"
    return found


@pytest.mark.parametrize(("made", "change", "read", "refused"), CHANGES, ids=[f"{m}-{c}" for m, c, *_ in CHANGES])
def test_the_walk_and_the_whole_agree(
    made: str, change: str, read: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = outcome(made, change, read)
    assert isinstance(whole, str) == refused
    for module in (region_state, aliases):
        monkeypatch.setattr(module, "is_lasting", lambda value: False)
    assert outcome(made, change, read) == whole
