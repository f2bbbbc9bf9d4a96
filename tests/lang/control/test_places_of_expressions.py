"""Every expression that the rewriter turns into a call, in every place where Python takes an expression."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute

FORMS = {
    "chain": "n - 1 < f(n) < 4",
    "long chain": "0 < f(n) < f(f(n)) <= n + 2 < 7",
    "chain of in": "f(n) in (2, n) != f(0)",
    "and": "n > 1 and f(n) < 5",
    "or": "n > 3 or f(n) < 3",
    "not": "not f(n) < 3",
    "choice": "(f(n) if n > 2 else 7) > 4",
    "in": "f(n) in (1, n + 1, 5)",
    "any": "any([n > 3, f(n) == 2])",
    "min": "min(f(n), 3) == 3",
}
PLACES = {
    "statement": "return g(E)",
    "argument": "return max(g(E), f(g(E)), -1)",
    "keyword and star": "return f(*[g(E)], k=g(E))",
    "items of a comprehension": "return sum([z * g(E) for z in (1, 2)])",
    "what a comprehension runs over": "return sum([z + 1 for z in (g(E), 2)])",
    "what a generator runs over": "return sum(z for z in [g(E), g(E)])",
    "the second loop of a comprehension": "return sum([y + z for y in (1, g(E)) for z in (g(E), 2)])",
    "a comprehension in one": "return sum([z for z in [y + 1 for y in (g(E), 3)]])",
    "what a dict comprehension runs over": "return sum({k: v for k, v in enumerate((g(E), g(E)))}.values())",
    "a loop": "t = 0\nfor z in (g(E), 3):\n    t += z * g(E)\nreturn t",
    "an index": "return (g(E), 5)[0] + [4, g(E)][1:][0]",
    "a nested function": "def h(n, k=g(E)):\n    return k + g(E)\nreturn h(n)",
    "an unpacking": "a, *b = g(E), *(g(E), 2)\nreturn a + sum(b)",
    "a condition": "t = 0\nif E:\n    t = g(E)\nelif not (E):\n    t = 5\nreturn t",
    "a loop's condition": "i = 0\nwhile i < 3 and (E or i < 2):\n    i += 1\nreturn i",
    "another one": "return g((E) and not (E) or (E)) + (1 if (g(E) if E else 1) == 1 else 0)",
    "an assignment to an element": "t = [0, 0]\nt[1] = g(E)\nt[0] += g(E)\nreturn t[0] + t[1]",
    "an f-string's key": "return {'1': g(E)}[f'{1}']",
}
LANES = (0, 1, 2, 3, 4)
numbered = itertools.count()


def f(n: Any, k: int = 0) -> Any:
    return n + 1 + k


def g(p: Any) -> Any:
    return int(p) if isinstance(p, bool) else cutlass.Int32(p)


def program(place: str) -> Any:
    """A function of ``n`` for each form in this place, in one (made-up) source file."""
    lines = []
    for i, form in enumerate(FORMS.values()):
        body = PLACES[place].replace("E", form if place.startswith("a") else f"({form})")
        lines += [f"def p{i}(n):", *(f"    {line}" for line in body.split("\n"))]
    text, name = "\n".join([*lines, ""]), f"<places of expressions {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"f": f, "g": g, "__name__": __name__}
    exec(compile(text, name, "exec"), scope)
    return [scope[f"p{i}"] for i in range(len(FORMS))]


@pytest.mark.parametrize("place", PLACES)
def test_each_form_in_each_place(place: str) -> None:
    plain = program(place)
    inner = [cute.jit(one) for one in plain]

    @cute.kernel
    def body(out: cute.Tensor):
        n, _, _ = cute.arch.thread_idx()
        for i in cutlass.range_constexpr(len(inner)):
            out[i, n] = cutlass.Int32(inner[i](n))

    @cute.jit
    def host(out: cute.Tensor):
        body(out).launch(grid=1, block=len(LANES))

    out = np.zeros((len(FORMS), len(LANES)), np.int32)
    host(out)
    for form, one, found in zip(FORMS, plain, out.tolist(), strict=True):
        assert found == [int(one(n)) for n in LANES], form
