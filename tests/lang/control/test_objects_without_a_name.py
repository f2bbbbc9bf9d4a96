"""Objects that only Python's own machinery holds: the stack of an expression, an iterator, a context manager.

A region that leaves one of two objects gives a third one, made of both; what is then written to it must not be missed
where the first object is read once more. Each program is Python's answer or a refusal.
"""

from __future__ import annotations

import itertools
import linecache
from dataclasses import dataclass
from typing import Any

import pytest

from tilewright import cute
from tilewright.errors import StagingError

from .conftest import staged_run

HOLDERS = {
    "list": ("[n, 2]", "[8, 3]", "X[0] = 7", "X[0]"),
    "dict": ("{'a': n}", "{'a': 8}", "X['a'] = 7", "X['a']"),
    "object": ("Box(n)", "Box(8)", "X.v = 7", "X.v"),
    "nested": ("([n], 1)", "([8], 1)", "X[0][0] = 7", "X[0][0]"),
}
"""How an object and another one are made, what is written, and what is read."""
CHOICES = {
    "expression": "    return x if n > 2 else OTHER\n",
    "statement": "    if n > 2:\n        x = OTHER\n    return x\n",
    "loop": "    for i in range(n - 2):\n        x = OTHER\n    return x\n",
}
PLACES = {
    "a tuple": "x = NEW\nt = x, write(choose(x, n))\nreturn READ(t[0])",
    "an argument": "x = NEW\nreturn first(x, write(choose(x, n)))",
    "a keyword": "x = NEW\nreturn first(a=x, b=write(choose(x, n)))",
    "a starred one": "x = NEW\nreturn first(*[x], write(choose(x, n)))",
    "a list in a list": "x = NEW\nt = [[x], [write(choose(x, n))]]\nreturn READ(t[0][0])",
    "a dict's value": "x = NEW\nt = {'x': x, 'y': write(choose(x, n))}\nreturn READ(t['x'])",
    "a result": "a, b = pair(NEW, n)\nwrite(b)\nreturn READ(a)",
    "a call around": "return first(*two(NEW, n))",
    "a part": "o = [NEW]\nt = o[0], write(choose(o[0], n))\nreturn READ(t[0])",
    "what a function gave": "o = [NEW]\nt = same(o[0]), write(choose(o[0], n))\nreturn READ(t[0])",
    "a default": "x = NEW\ndef f(k, x=x):\n    return READ(x)\nx = choose(x, n)\nwrite(x)\nreturn f(1)",
    "a list that is looped over": "s = 0\nfor x in [NEW] * 2:\n    s += READ(x)\n    x = choose(x, n)\n    write(x)\n"
    "return s",
    "the list itself": "t, s = [NEW, NEW], 0\nfor x in t:\n    s += READ(x)\n    if n < 3:\n        t = [OTHER] * 2\n"
    "    t[1] = OTHER\nreturn s",
    "a reversed one": "s = 0\nfor x in reversed([NEW] * 2):\n    s += READ(x)\n    write(choose(x, n))\nreturn s",
    "enumerate": "s = 0\nfor i, x in enumerate([NEW] * 2):\n    s += READ(x)\n    write(choose(x, n))\nreturn s",
    "zip": "s = 0\nfor x, y in zip([NEW] * 2, (1, 2)):\n    s += READ(x) * y\n    write(choose(x, n))\nreturn s",
    "a generator": "s = 0\nfor x in gives(NEW):\n    s += READ(x)\n    write(choose(x, n))\nreturn s",
    "a comprehension": "return sum([READ(x) + write(choose(x, n)) for x in [NEW] * 2])",
    "a context manager": "with Kept(NEW) as x:\n    x = choose(x, n)\n    write(x)\nreturn READ(LAST[0])",
    "one of two": "with Other(0), Kept(NEW) as x:\n    x = choose(x, n)\n    write(x)\nreturn READ(LAST[0])",
    "a region in a with statement": "with Kept(NEW) as x:\n    if n < 3:\n        x = OTHER\n    write(x)\n"
    "return READ(LAST[0])",
    "nothing": "x = choose(NEW, n)\nwrite(x)\nreturn READ(x)",
    "an element that has passed": "s = 0\nfor x in [NEW]:\n    x = choose(x, n)\n    write(x)\n    s += READ(x)\n"
    "return s",
}
PROGRAM = """
LAST = [0]
class Other:
    def __init__(self, x):
        self.x = x
    def __enter__(self):
        return self.x
    def __exit__(self, *unused):
        pass
class Kept(Other):
    def __exit__(self, *unused):
        LAST[0] = self.x
def first(a, b):
    return READ(a)
def same(x):
    return x
def gives(x):
    yield x
    yield x
def choose(x, n):
CHOICE
def write(x):
    WRITE
    return 0
def pair(x, n):
    return x, choose(x, n)
def two(x, n):
    return x, write(choose(x, n))
def program(n):
"""
FUNCTIONS = ("first", "choose", "write", "pair", "two", "read", "same")
NOT_HELD = ("nothing", "an element that has passed")
numbered = itertools.count()


@dataclass
class Box:
    v: Any


def scope_of(holder: str, choice: str, place: str) -> dict[str, Any]:
    """The variables of a program; its functions are marked, and ``plain`` has them as they are."""
    made, other, write, read = HOLDERS[holder]
    text = PROGRAM.replace("CHOICE\n", CHOICES[choice]) + "".join(f"    {line}\n" for line in PLACES[place].split("\n"))
    text = text.replace("WRITE", write.replace("X", "x")).replace("NEW", made).replace("OTHER", other)
    text = text.replace("READ", "read") + f"def read(x):\n    return {read.replace('X', 'x')}\n"
    name = f"<objects without a name {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": __name__, "Box": Box}
    exec(compile(text, name, "exec"), scope)
    plain = {name: scope[name] for name in FUNCTIONS}
    return scope | {name: cute.jit(function) for name, function in plain.items()} | {"plain": plain}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_written_is_seen_or_refused(choice: str, place: str) -> None:
    for holder, n in itertools.product(HOLDERS, (1, 3)):
        scope = scope_of(holder, choice, place)
        one = scope["program"]
        marked = {name: scope[name] for name in FUNCTIONS}
        one.__globals__.update(scope["plain"])
        expected = (float(one(n)),)
        one.__globals__.update(marked)
        try:
            found = staged_run(one, n)
        except StagingError as refused:
            assert place not in NOT_HELD and "one of two objects" in str(refused), (holder, refused)
        else:
            assert found == expected, holder
