"""Classes that name another module than the program's: their objects are followed as those of all its classes are."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import StagingError

from .conftest import staged_run

INIT = "{'__init__': lambda self, v: setattr(self, 'v', v)}"
BODY = "    def __init__(self, v):\n        self.v = v\n"
CLASSES = {
    "statement": f"class B:\n{BODY}",
    "slots": f"class B:\n    __slots__ = ('v',)\n{BODY}",
    "a list": f"class B(list):\n{BODY}",
    "inside of a function": "def made():\n    class B:\n"
    + BODY.replace("    ", "        ")
    + "    return B\nB = made()\n",
    "type": f"B = type('B', (), {INIT})\n",
    "ABCMeta": f"import abc\nB = abc.ABCMeta('B', (), {INIT})\n",
    "make_dataclass": "import dataclasses\nB = dataclasses.make_dataclass('B', ['v'])\n",
    "new_class": f"import types\nB = types.new_class('B', (), {{}}, lambda names: names.update({INIT}))\n",
    "says numpy": f"class B:\n    __module__ = 'numpy'\n{BODY}",
    "says torch": f"class B:\n    __module__ = 'torch.nn'\n{BODY}",
    "says tilewright": f"class B:\n    __module__ = 'tilewright.ir.core'\n{BODY}",
}
CHANGES = (
    "    b = B(n)\n    if n > 3:\n        b.v = 5\n    return b.v\n",
    "    b = B(n)\n    for i in range(n % 3):\n        b.v = b.v + i\n    return b.v\n",
    "    B.w = 1\n    if n > 3:\n        B.w = 5\n    return B.w\n",
)
numbered = itertools.count()


def scope_of(text: str, named: bool) -> dict[str, Any]:
    """The variables of a program whose code has a ``__name__`` or not."""
    name = f"<classes made by code {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": "programs_of_a_generator"} if named else {}
    exec(compile(text, name, "exec"), scope)
    return scope


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("made", CLASSES)
def test_changes_of_objects_are_pythons_or_refused(made: str, named: bool) -> None:
    for change in CHANGES:
        program = scope_of(f"{CLASSES[made]}def program(n):\n{change}", named)["program"]
        for n in (1, 2, 4):
            expected = (float(program(n)),)
            try:
                found = staged_run(program, n)
            except StagingError as refused:
                assert "changes its attributes" in str(refused) and "B.w" in change, refused
            else:
                assert found == expected, (change, n)


@pytest.mark.parametrize("made", ["statement", "ABCMeta", "says numpy", "says tilewright"])
def test_a_direct_call_sees_that_such_an_object_has_changed(made: str) -> None:
    scope = scope_of(f"{CLASSES[made]}b = B(1)\ndef value():\n    return b.v\n", False)
    b, value = scope["b"], scope["value"]

    @cute.jit
    def host(out: cute.Tensor):
        out[0] = cutlass.Int32(value())

    out = np.zeros(1, np.int32)
    for b.v in (1, 2, 1):
        host(out)
        assert out[0] == b.v
