"""Objects that change in place inside containers, under run-time control flow: random programs over random shapes of
containers give what plain Python gives; or they are refused with a line of the program, and never run otherwise."""

from __future__ import annotations

import collections
import itertools
import linecache
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.errors import StagingError
from tilewright.pipeline.state import PipelineState

from .conftest import staged_run

numbered = itertools.count()


class Counter:
    def __init__(self) -> None:
        self.count: Any = 0

    def advance(self) -> None:
        self.count = self.count + 1


class Holder:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def step(self) -> None:
        """Changes an object that the caller does not name."""
        while isinstance(self.first, Holder):
            self = self.first
        if hasattr(self.first, "advance"):
            self.first.advance()


@dataclass
class Record:
    first: Any
    second: Any


@dataclass(frozen=True)
class Frozen:
    first: Any
    second: Any


class Named(NamedTuple):
    first: Any
    second: Any


REFUSALS = re.compile(
    "<containers of state .*(one of two objects that can change|known only while staging|changes its type in the"
    "|leave it with different kinds|leaves it as|has no value after)"
)
"""What is said of an object that gets another name or place."""
MAKE: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "tuple": (lambda a, b: (a, b), "[0]", "[1]"),
    "list": (lambda a, b: [a, b], "[0]", "[1]"),
    "dict": (lambda a, b: {"first": a, "second": b}, "['first']", "['second']"),
    "named": (Named, ".first", "[1]"),
    "record": (Record, ".first", ".second"),
    "frozen": (Frozen, ".first", ".second"),
    "object": (Holder, ".first", ".second"),
    "namespace": (lambda a, b: types.SimpleNamespace(first=a, second=b), ".first", ".second"),
    "deque": (lambda a, b: collections.deque((a, b)), "[0]", "[1]"),
    "proxy": (lambda a, b: types.MappingProxyType({1: a, 2: b}), "[1]", "[2]"),
    "default": (lambda a, b: collections.defaultdict(int, {1: a, 2: b}), "[1]", "[2]"),
    "chain": (lambda a, b: collections.ChainMap({1: a}, {2: b}), "[1]", "[2]"),
    "closure": (lambda a, b: lambda first: a if first else b, "(True)", "(False)"),
}
"""How a container of two is made, and what reads either of them."""


@st.composite
def shape(draw: Any, depth: int = 0) -> Any:
    """A tree of kinds of containers; None where a state is."""
    if depth == 2 or (depth and draw(st.booleans())):
        return None
    return draw(st.sampled_from(sorted(MAKE))), draw(shape(depth + 1)), draw(shape(depth + 1))


def built(tree: Any, new: Callable[[], Any]) -> Any:
    return new() if tree is None else MAKE[tree[0]][0](built(tree[1], new), built(tree[2], new))


def paths(tree: Any, start: str) -> list[str]:
    """The expressions for the states in a container that ``start`` reads."""
    if tree is None:
        return [start]
    _, first, second = MAKE[tree[0]]
    return [*paths(tree[1], start + first), *paths(tree[2], start + second)]


@st.composite
def statements(draw: Any, states: list[str], depth: int, moving: bool) -> list[str]:
    """Lines that change states in place; with ``moving`` objects get other names and other places, too."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        state, other = draw(st.sampled_from(states)), draw(st.sampled_from(states))
        kind = draw(st.integers(0, (8 if moving else 6) if depth < 2 else 1))
        inner = statements(states, depth + 1, moving)
        if kind == 0:
            lines.append(f"{state}.advance()")
        elif kind == 1:
            lines += [f"for each in ({state}, {other}):", "    each.advance()"]
        elif kind in (2, 3):
            lines += [f"if {state}.count % 2 == {draw(st.integers(0, 1))}:" if kind == 2 else "if n > 0:"]
            lines += indented(draw(inner))
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(inner))]
        elif kind == 4:
            lines += [f"for i{next(numbered)} in range(n + 2):", *indented(draw(inner))]
        elif kind == 5:
            counter = f"w{next(numbered)}"
            lines += [f"{counter} = 0", f"while {counter} < n + 1:", *indented([f"{counter} += 1", *draw(inner)])]
        elif kind == 6:
            lines += ["if n > 0:", "    change()"]
        elif kind == 7:
            lines += [f"held = {state}", *draw(inner), "held.advance()"]
        else:
            target = draw(st.sampled_from(["held", "c"]))
            made = draw(st.sampled_from([f"make({state}, {other})", "make(new(), new())", "c"]))
            lines.append(f"held = {state}" if target == "held" else f"c = {made}")
    return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def program(tree: Any, states: list[str], lines: list[str], pipeline: list[bool]) -> tuple[Any, str]:
    """The lines as a function of n; ``pipeline[0]`` says which class the states are of."""
    listed = ", ".join(f"{state}.count" for state in states)
    text = "\n".join(
        [
            "def program(n):",
            "    c = start()",
            "    held = new()",
            "    def change():",
            f"        {states[0]}.advance()",
            *indented(lines),
            f"    return {listed}, held.count",
            "",
        ]
    )
    name = f"<containers of state {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)

    def new() -> Any:
        return PipelineState(4, 0, 0, 0) if pipeline[0] else Counter()

    def make(first: Any, second: Any) -> Any:
        """A container of the shape of ``c``, around two states."""
        rest = iter((first, second))
        return built(tree, lambda: next(rest, None) or new())

    scope = {"new": new, "start": lambda: built(tree, new), "make": make}
    exec(compile(text, name, "exec"), scope)
    return scope["program"], text


def check(tree: Any, data: Any, moving: bool) -> None:
    states = paths(tree, "c")
    lines = data.draw(statements(states, 0, moving))
    pipeline = [False]
    run, text = program(tree, states, lines, pipeline)
    for n in (-1, 2):
        expected = run(n)
        for pipeline[0] in (False, True):
            try:
                found = staged_run(run, n)
            except StagingError as refused:
                assert moving, f"{text}\n{refused}"
                assert REFUSALS.search(str(refused)), f"{text}\n{refused}"
            else:
                assert found == tuple(map(float, expected)), text
        pipeline[0] = False


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(shape(), st.data())
def test_states_change_where_they_are(tree: Any, data: Any) -> None:
    check(tree, data, moving=False)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(shape(), st.data())
def test_states_that_get_other_names_and_places(tree: Any, data: Any) -> None:
    check(tree, data, moving=True)
