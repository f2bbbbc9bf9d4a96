"""What a directly called function is staged again for.

Each thing that a staged function can read is changed between two calls, which then must give what a function that was
never called gives, and a third call must stage nothing."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.host import settings
from tilewright.base_dsl.settings import Arch, BaseDSL
from tilewright.lang.launch.dependencies import SETTINGS

factor = 2
"""What the functions and methods below read, each by another way."""


def plain(x):
    return x * factor


def other(x):
    return x * 7


def with_attribute(x):
    return x * with_attribute.factor


with_attribute.factor = 2
part = functools.partial(plain)
table = {"plain": plain}
words, waiting, nested, pair = {"a"}, collections.deque([1]), [[2]], ([2],)


class Listed(list):
    pass


listed = Listed()
listed.factor = 2


class Slotted:
    __slots__ = ("factor",)


slotted = Slotted()
slotted.factor = 2


class Base:
    shared = 2


class Methods(Base):
    def __init__(self) -> None:
        self.own, self.settings = 2, types.SimpleNamespace(factor=2)

    def method(self, x):
        return x * factor

    @staticmethod
    def static(x):
        return x * factor

    @property
    def derived(self):
        return factor

    @cute.jit
    def marked(self, x):
        return x * 2

    def __rmul__(self, x):
        return x * factor


class Others:
    @cute.jit
    def marked(self, x):
        return x * 7


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Methods


methods, frozen = Methods(), Frozen(Methods())


def imports(x):
    from tests.lang.host import settings as late

    return x * late.factor


def set_global(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


def set_on(holder: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(holder, name, value, raising=False)


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[pytest.MonkeyPatch], Any]]] = {
    "a name of Python that becomes a global": (lambda x: x * abs(-2), set_global("abs", other)),
    "a global of a partial's function": (lambda x: part(x), set_global("factor", 5)),
    "a global of a function in a dict": (lambda x: table["plain"](x), set_global("factor", 5)),
    "a global of a method": (lambda x: methods.method(x), set_global("factor", 5)),
    "a global of a static method": (lambda x: Methods.static(x), set_global("factor", 5)),
    "a global of a property": (lambda x: x * methods.derived, set_global("factor", 5)),
    "a global of an operator": (lambda x: x * methods, set_global("factor", 5)),
    "a global of a module's function": (lambda x: settings.scaled(x), set_on(settings, "factor", 5)),
    "a global of a module imported inside": (imports, set_on(settings, "factor", 5)),
    "the code of a function": (lambda x: plain(x), set_on(plain, "__code__", other.__code__)),
    "an attribute of a function": (with_attribute, set_on(with_attribute, "factor", 5)),
    "a marked method": (lambda x: methods.marked(x), set_on(Methods, "marked", vars(Others)["marked"])),
    "an attribute of a base class": (lambda x: x * methods.shared, set_on(Base, "shared", 5)),
    "an attribute that hides the class's": (lambda x: x * methods.shared, set_on(methods, "shared", 5)),
    "an attribute of an attribute": (lambda x: x * methods.settings.factor, set_on(methods.settings, "factor", 5)),
    "an attribute behind a frozen object": (lambda x: x * frozen.inner.own, set_on(frozen.inner, "own", 5)),
    "a slot": (lambda x: x * slotted.factor, set_on(slotted, "factor", 5)),
    "an attribute of a list": (lambda x: x * listed.factor, set_on(listed, "factor", 5)),
    "a set": (lambda x: x * len(words), lambda patch: words.add(str(len(words)))),
    "a deque": (lambda x: x * len(waiting), lambda patch: waiting.append(1)),
    "a list in a list": (lambda x: x * nested[0][0], lambda patch: nested[0].append(nested[0].pop() + 1)),
    "a list in a tuple": (lambda x: x * pair[0][0], lambda patch: pair[0].append(pair[0].pop() + 1)),
    "a module's variable by a text": (lambda x: x * getattr(settings, "factor"), set_on(settings, "factor", 5)),  # noqa: B009  it is what is tested
    "one that comes later": (lambda x: x * getattr(settings, "later", 2), set_on(settings, "later", 5)),
    "one by a made name": (lambda x: x * getattr(settings, f"fac{'tor'}"), set_on(settings, "factor", 5)),
    "one in a module's dict": (lambda x: x * vars(settings)["factor"], set_on(settings, "factor", 5)),
    "one by attrgetter": (lambda x: x * operator.attrgetter("factor")(settings), set_on(settings, "factor", 5)),
    "one that sys.modules has": (
        lambda x: x * sys.modules["tests.lang.host.settings"].factor,
        set_on(settings, "factor", 5),
    ),
    "a global by a text": (lambda x: x * globals()["factor"], set_global("factor", 5)),
    "a global by a made name": (lambda x: x * globals()["fac" + "tor"], set_global("factor", 5)),
    "a global in an expression": (lambda x: x * eval("factor + 0"), set_global("factor", 5)),
    "the environment": (
        lambda x: x * int(os.environ.get("A_FACTOR", "2")),
        lambda patch: patch.setenv("A_FACTOR", "5"),
    ),
    "the architecture that the environment names": (
        lambda x: x * (5 if BaseDSL._get_dsl().get_arch_enum() >= Arch.sm_100 else 2),
        lambda patch: patch.setenv("CUTE_DSL_ARCH", "sm_100a"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_changed_thing_is_staged_again(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, change = CASES[case]

    @cute.jit
    def f(x: cutlass.Int32):
        return read(x)

    before = f(3)
    assert f(3) == before and sum(map(len, f.cache.values())) == 1
    change(monkeypatch)
    after = f(3)
    assert after == f(3, no_cache=True) != before
    entry = f.last
    assert f(4) != after and f.last is entry


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_that_is_launched_again_sees_what_the_host_function_changed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, change = CASES[case]

    @cute.kernel
    def kernel(out: cute.Tensor, x: cutlass.Int32):
        out[0] = cutlass.Int32(read(x))

    @cute.jit
    def host(first: cute.Tensor, same: cute.Tensor, second: cute.Tensor):
        kernel(first, 3).launch(grid=1, block=1)
        kernel(same, 3).launch(grid=1, block=1)
        change(monkeypatch)
        kernel(second, 3).launch(grid=1, block=1)

    @cute.jit
    def f(x: cutlass.Int32):
        return read(x)

    before = f(3)
    outs = [np.zeros(1, np.int32) for _ in range(3)]
    compiled = cute.compile(host, *outs)
    compiled(*outs)
    assert [int(out[0]) for out in outs] == [before, before, f(3, no_cache=True)]
    assert len(compiled.kernels) == 2 and outs[0] != outs[2]


def test_a_kernel_of_an_object_whose_attributes_change() -> None:
    class Program:
        @cute.kernel
        def kernel(self, out: cute.Tensor):
            self.noted = [self.factor]
            out[0] = cutlass.Int32(self.factor)

        @cute.jit
        def __call__(self, first: cute.Tensor, second: cute.Tensor, third: cute.Tensor):
            for self.factor, out in ((2, first), (5, second), (2, third)):
                self.kernel(out).launch(grid=1, block=1)

    outs = [np.zeros(1, np.int32) for _ in range(3)]
    Program()(*outs)
    assert [int(out[0]) for out in outs] == [2, 5, 2]


def test_a_function_that_is_part_of_the_program_is_followed() -> None:
    factor = 2

    @cute.jit
    def f(x: cutlass.Int32, function: cutlass.Constexpr):
        return function(x)

    def scaled(x):
        return x * factor

    assert f(3, scaled) == 6
    factor = 5
    assert f(3, scaled) == 15
    del factor
    with pytest.raises(NameError, match="factor"):
        f(3, scaled)
    factor = 7
    assert f(3, scaled) == 21


class SetsUp:
    """A program that notes in itself what it made while it was staged, as many do."""

    def __init__(self) -> None:
        self.factor = 2

    @cute.jit
    def __call__(self, x: cutlass.Int32):
        self.made = [self.factor, x]
        return x * self.factor


def test_what_staging_puts_into_an_object_is_not_compared_and_the_rest_of_it_is() -> None:
    program = SetsUp()
    assert [program(3), program(4)] == [6, 8]
    entry = SetsUp.__call__.last
    assert program(5) == 10 and SetsUp.__call__.last is entry
    program.factor = 5
    assert program(3) == 15 and SetsUp.__call__.last is not entry


PACKAGE = Path(cutlass.__file__).parent
READERS = {
    "base_dsl/settings.py": ["CUTE_DSL_ARCH"],
    "ir/target.py": ["CUTE_DSL_ARCH"],
    "lang/tensors/outside.py": ["TILEWRIGHT_OUTSIDE_REGISTERS"],
    # These change no program: how errors are shown, what is kept on the disk, what a compilation writes beside.
    "lang/staging/user_errors.py": [],
    "lang/launch/stored.py": [],
    "lang/launch/options.py": [],
    "lang/launch/dependencies.py": [],
}
"""Modules that staging may run and that read the environment, and the variables that programs depend on."""


def test_what_staging_reads_of_the_environment_is_compared() -> None:
    folders = "atoms base_dsl cute experimental ir lang layout pipeline tiled utils".split()
    found = [
        path.relative_to(PACKAGE).as_posix()
        for folder in folders
        for path in (PACKAGE / folder).rglob("*.py")
        if re.search(r"\bos\.(environ|getenv)\b", path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == sorted(READERS), "a reader of the environment: is its variable one of SETTINGS?"
    assert {name for names in READERS.values() for name in names} == set(SETTINGS)


def test_the_short_cut_says_what_the_entries_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case again without the short cut: ``hold`` gives the same answers."""
    for read, change in CASES.values():

        @cute.jit
        def f(x: cutlass.Int32, read=read):
            return read(x)

        f(3)
        found = f.last.dependencies
        assert found.hold() and not found.changed()
        change(monkeypatch)
        assert not found.hold() and found.changed()
        monkeypatch.undo()
