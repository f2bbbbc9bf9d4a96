"""Random programs over everything that holds state in Python: what :mod:`test_holders_of_state` and
``bench/staging_search.py`` compare with plain Python, lane by lane.

A program is a function of ``n``, which is 1, 2, 3, 4 in four lanes. It makes some holders, gives some of them another
name, changes them in branches, loops, nested functions and lazily evaluated expressions, and returns what they hold.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import itertools
import linecache
import random
import types
import weakref
from abc import ABCMeta
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import TilewrightError

LANES = (1, 2, 3, 4)
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
numbered = itertools.count()


class Box:
    shared: Any = [0]
    level: Any = 0

    def __init__(self, v: Any) -> None:
        self.v = v

    def bump(self, k: Any) -> Any:
        self.v = self.v + k
        return self.v


class Other(Box):
    pass


class Slotted:
    __slots__ = ("v", "w")

    def __init__(self, v: Any) -> None:
        self.v = v


class Listed(list):
    pass


class Lookup:
    """Answers any attribute from a dict, with a KeyError where it has none."""

    def __init__(self, v: Any) -> None:
        self.table = {"v": v}

    def __getattr__(self, name: str) -> Any:
        return {"table": None, **self.__dict__["table"]}[name]


Made = ABCMeta("Made", (), {"__init__": lambda self, v: setattr(self, "v", v)})
"""A class that says that it is of the module ``abc``."""


@dataclass
class Record:
    v: Any


@dataclass(frozen=True)
class Frozen:
    v: Any


def with_default() -> Callable[[Any], Any]:
    def add(k: Any, box: list[Any] = [0]) -> Any:  # noqa: B006 - a default that changes is a holder, too
        box[0] = box[0] + k
        return box[0]

    return add


def with_attribute(v: Any) -> Callable[[Any], Any]:
    def add(k: Any) -> Any:
        add.total = add.total + k
        return add.total

    add.total = v
    return add


def counter() -> tuple[Callable[[Any], Any], Callable[[], Any]]:
    count = 0

    def bump(k: Any) -> Any:
        nonlocal count
        count = count + k
        return count

    return bump, lambda: count


def cached(box: list[Any]) -> Callable[[Any], Any]:
    @functools.lru_cache
    def once(k: Any) -> Any:
        box[0] = box[0] + 1
        return k

    return once


def set_class(h: Any, k: Any) -> None:
    h.__class__ = Other


def level(h: Any) -> Any:
    """What a function that is not marked sees of a value."""
    return 50 if h is None else 60 if isinstance(h, str) else h


HOLDERS: dict[str, tuple[str, list[str], list[str]]] = {
    "list": ("H = [n, 1]", ["H[0] = E", "H[1] += E", "H.append(E)", "H.reverse()", "H = [E, 2]", "H.__setitem__(0, E)",
                            "H += [E]"], ["H[0]", "H[1]", "len(H)", "H[-1]"]),
    "dict": ("H = {'a': n}", ["H['a'] = E", "H['b'] = E", "H.update(a=E)", "H = {'a': E}", "H.clear()",
                              "H.setdefault('a', E)"], ["H.get('a', 3)", "H.get('b', 5)", "len(H)"]),
    "object": ("H = Box(n)", ["H.v = E", "H.w = E", "H.bump(E)", "H = Box(E)", "setattr(H, 'v', E)"],
               ["H.v", "getattr(H, 'w', 9)"]),
    "made class": ("H = Made(n)", ["H.v = E", "H.w = E", "H = Made(E)"], ["H.v", "getattr(H, 'w', 9)"]),
    "slots": ("H = Slotted(n)", ["H.v = E", "H.w = E", "H = Slotted(E)"], ["H.v", "getattr(H, 'w', 9)"]),
    "record": ("H = Record(n)", ["H.v = E", "H = Record(E)"], ["H.v"]),
    "frozen": ("H = Frozen(n)", ["object.__setattr__(H, 'v', E)", "H = Frozen(E)"], ["H.v"]),
    "class list": ("H = Box; Box.shared = [0]", ["H.shared[0] = E", "H.shared = [E]"], ["H.shared[0]"]),
    "class attribute": ("H = Box(0); Box.level = 0", ["Box.level = E", "type(H).level = E", "H.level = E"],
                        ["H.level", "Box.level"]),
    "function attribute": ("H = with_attribute(n)", ["H(E)", "H.total = E", "H.other = E"],
                           ["H.total", "H(1)", "getattr(H, 'other', 4)"]),
    "default": ("H = with_default()", ["H(E)"], ["H(1)", "H.__defaults__[0][0]"]),
    "counter": ("H = counter()", ["H[0](E)"], ["H[1]()"]),
    "list subclass": ("H = Listed([n]); H.t = 0", ["H.t = E", "H[0] = E", "H.append(E)"], ["H.t", "H[0]", "len(H)"]),
    "view": ("H0_ = {'a': [n]}; H = H0_.values()", ["next(iter(H))[0] = E", "H0_['b'] = [E]", "H0_['a'] = [E]"],
             ["list(H)[0][0]", "len(H)", "list(H)[-1][0]"]),
    "cache": ("H0_ = [0]; H = cached(H0_)", ["H(3)", "H(4)", "H0_[0] = E"], ["H0_[0]", "H(3)"]),
    "objects array": ("H = np.array([0, 0], object)", ["H[0] = E", "H[1] = E"], ["H[0]", "H[1]"]),
    "array": ("H = array.array('i', [5, 6])", ["H[0] = 3", "H.append(3)", "H.reverse()"], ["H[0]", "len(H)"]),
    "bytes": ("H = bytearray(b'abc')", ["H[0] = 3", "H.append(3)"], ["H[0]", "len(H)"]),
    "weak": ("H0_ = Box(n); H = weakref.ref(H0_)", ["H().v = E", "H().bump(E)", "H0_.v = E"], ["H0_.v", "H().v"]),
    "context": ("H = VARIABLE; H.set(0)", ["H.set(3)", "H.set(4)"], ["H.get()"]),
    "random": ("H = random.Random(1)", ["H.random()", "H.seed(3)"], ["int(100 * H.random())"]),
    "random module": ("random.seed(1)", ["random.random()", "random.seed(3)"], ["int(100 * random.random())"]),
    "NumPy random": ("H = np.random.default_rng(0)", ["H.random()"], ["int(100 * H.random())"]),
    "class": ("H = Box(n)", ["H.__class__ = Other", "set_class(H, 0)"], ["(1 if type(H) is Other else 2)"]),
    "deque": ("H = collections.deque([n, 1])", ["H[0] = E", "H.append(E)", "H.rotate(1)"], ["H[0]", "len(H)"]),
    "set": ("H = {1}", ["H.add(5)", "H.clear()"], ["len(H)"]),
    "ordered": ("H = collections.OrderedDict(a=1, b=2)", ["H.move_to_end('a')", "H['a'] = E"], ["list(H.values())[0]"]),
    "default dict": ("H = collections.defaultdict(int, a=n)", ["H['a'] += E", "H['b'] += E", "H['c']"],
                     ["H['a']", "H.get('b', 2)", "len(H)"]),
    "namespace": ("H = types.SimpleNamespace(v=n)", ["H.v = E", "H.w = E"], ["H.v", "getattr(H, 'w', 9)"]),
    "proxy": ("H0_ = {'a': n}; H = types.MappingProxyType(H0_)", ["H0_['a'] = E", "H0_['b'] = E"],
              ["H['a']", "len(H)"]),
    "lookup": ("H = Lookup(n)", ["H.table['v'] = E", "H.x = 5"], ["H.v"]),
    "nested": ("H = ([n], {'a': [1]})", ["H[0][0] = E", "H[1]['a'][0] = E", "H[1]['a'] = [E]", "H = ([E], H[1])",
                                         "H = (H[0], {'a': [E]})"], ["H[0][0]", "H[1]['a'][0]"]),
    "nothing": ("H = None", ["H = E", "H = None", "H = 'text'"],
                ["(1 if H is None else 2)", "(1 if isinstance(H, str) else 2)", "level(H)", "(H or 7)"]),
    "nothing in a list": ("H = [None]", ["H[0] = E", "H = [None]"], ["(1 if H[0] is None else 2)", "level(H[0])"]),
    "iterator": ("H = iter([1, 2, 3, 4, 5, 6, 7, 8])", ["next(H)"], ["next(H)"]),
    "number": ("H = n", ["H = E", "H += E", "H = 3"], ["H"]),
}  # fmt: skip
"""Of each holder how it is made, what changes it, and what reads it; ``H`` is its name, ``E`` a number."""
REBINDS = ("H =", "H +=")


class Program:
    """Draws one program. ``depth`` bounds nesting; functions that were defined so far are called later."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.holders = [(f"h{i}", self.random.choice(list(HOLDERS))) for i in range(self.random.randint(1, 3))]
        self.functions: list[str] = []
        self.count = itertools.count()
        self.lines = [HOLDERS[kind][0].replace("H", name) for name, kind in self.holders]
        for name, kind in list(self.holders):
            if self.random.random() < 0.4 and "module" not in kind:
                alias = f"q{next(self.count)}"
                made = f"{alias}, {name}0_ = {name}, {name}0_" if "H0_" in HOLDERS[kind][0] else f"{alias} = {name}"
                self.lines.append(made)
                if "H0_" not in HOLDERS[kind][0]:
                    self.holders.append((alias, kind))
        self.lines += self.block(0, True)
        reads = [self.read() for _ in range(self.random.randint(2, 4))]
        if self.functions and self.random.random() < 0.5:
            reads.append(f"{self.random.choice(self.functions)}(2)")
        self.lines.append(f"return {', '.join(reads)},")

    def read(self) -> str:
        name, kind = self.random.choice(self.holders)
        return self.random.choice(HOLDERS[kind][2]).replace("H", name)

    def number(self) -> str:
        drawn = self.random.random()
        if drawn < 0.3:
            return str(self.random.randint(0, 9))
        if drawn < 0.8:
            return self.random.choice(["n", "n + 1", "n * 2", "n - 3"])
        return self.read()

    def condition(self) -> str:
        if self.random.random() < 0.12:
            return self.random.choice(["1 > 2", "2 > 1"])
        return f"{self.random.choice(['n', 'n', self.read()])} {self.random.choice('<>')} {self.random.randint(1, 4)}"

    def change(self, inner: bool) -> str:
        name, kind = self.random.choice(self.holders)
        changes = [c for c in HOLDERS[kind][1] if not (inner and c.startswith(REBINDS))] or ["pass"]
        return self.random.choice(changes).replace("H", name).replace("E", self.number())

    def block(self, depth: int, outermost: bool = False, inner: bool = False) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4 if outermost else 2)):
            lines += self.statement(depth, inner)
        return lines

    def statement(self, depth: int, inner: bool) -> list[str]:
        kind = self.random.randint(0, 13) if depth < 3 else 0
        if kind <= 2:
            return [self.change(inner)]
        body = indented(self.block(depth + 1, inner=inner)) if kind <= 7 else []
        if kind <= 5:
            other = ["else:", *indented(self.block(depth + 1, inner=inner))] if self.random.random() < 0.5 else []
            return [f"if {self.condition()}:", *body, *other]
        index = next(self.count)
        if kind == 6:
            return [f"for i{index} in range({self.random.choice(['n', 'n - 2', '2', 'n % 3'])}):", *body]
        if kind == 7:
            head = [f"w{index} = 0", f"while w{index} < n - 1:"]
            return [*head, f"    w{index} += 1", *body]
        if kind == 8 and not inner:
            body = indented(self.block(depth + 1, inner=True))
            early = ["    if 2 > 1:", f"        return {self.read()}"] if self.random.random() < 0.3 else []
            name = f"f{index}"
            made = [f"def {name}(k):", *body, *early, f"    return {self.read()} + k"]
            self.functions.append(name)
            return made
        if kind == 9 and self.functions and not inner:
            call = f"{self.random.choice(self.functions)}({self.number()})"
            return [
                self.random.choice(
                    [
                        call,
                        f"r{index} = {self.condition()} and {call} > 2",
                        f"r{index} = {call} if {self.condition()} else 1",
                        f"r{index} = any({self.random.choice(self.functions)}(k) > 3 for k in range(3))",
                    ]
                )
            ]
        if kind == 10 and self.random.random() < 0.2:
            return [f"if {self.condition()}:", f"    return {self.read()},"]
        if kind >= 12 and not inner:
            return self.named_again(depth, index)
        if kind == 11:
            first, second = self.random.choice(self.holders), self.random.choice(self.holders)
            if first[1] == second[1] and not inner:
                return [f"{first[0]} = {second[0]}"]
        return [self.change(inner)]

    def named_again(self, depth: int, index: int) -> list[str]:
        """A loop over a holder, or a context manager that gives it: both hold it while the body may name another."""
        name, kind = self.random.choice(self.holders)
        if "H0_" in HOLDERS[kind][0] or "module" in kind:
            return ["pass"]
        element, repeated = f"x{index}", self.random.randint(1, 2)
        head = self.random.choice(
            [f"for {element} in [{name}] * {repeated}:", f"with nullcontext({name}) as {element}:"]
        )
        self.holders.append((element, kind))
        body = indented(self.block(depth + 1))
        self.holders.remove((element, kind))
        return [head, *body]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def made(seed: int) -> tuple[Any, str]:
    """The program of a seed as a function that a (made-up) source file knows, and its text."""
    text = "\n".join(["def program(n):", *indented(Program(seed).lines), ""])
    name = f"<holder program {seed} {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {
        k: globals()[k]
        for k in ("Box", "Other", "Slotted", "Listed", "Lookup", "Record", "Frozen", "VARIABLE", "with_default", "np")
    }
    scope |= {"with_attribute": with_attribute, "counter": counter, "cached": cached, "set_class": set_class}
    scope |= {
        "Made": Made,
        "nullcontext": nullcontext,
        "level": level,
        "array": array,
        "collections": collections,
        "random": random,
        "types": types,
    }
    scope |= {"weakref": weakref}
    exec(compile(text, name, "exec"), scope)
    return scope["program"], text


def staged(program: Any) -> list[tuple[float, ...]]:
    """What the program gives in each lane of one kernel."""
    inner, count = cute.jit(program), []

    @cute.kernel
    def body(x: cute.Tensor, out: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        results = inner(x[lane])
        count.append(len(results))
        for i in cutlass.range_constexpr(len(results)):
            out[lane, i] = cutlass.Float64(results[i])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        body(x, out).launch(grid=1, block=len(LANES))

    out = np.zeros((len(LANES), 8))
    host(np.array(LANES, np.int32), out)
    return [tuple(row[: count[-1]].tolist()) for row in out]


def verdict(seed: int) -> tuple[str, str]:
    """``right``, ``refused``, ``wrong``, ``foreign`` (an error of another kind or without the user's line) or
    ``raises`` (plain Python does in some lane, or its numbers do not fit into 32 bits); and what there is to see."""
    program, text = made(seed)
    try:
        expected = [tuple(map(float, program(n))) for n in LANES]
    except Exception:
        return "raises", text
    if len({len(row) for row in expected}) > 1 or any(abs(x) >= 2**31 for row in expected for x in row):
        return "raises", text
    try:
        found = staged(program)
    except TilewrightError as refused:
        named = "<holder program" in str(refused) and "outside its scope" not in str(refused)
        return ("refused" if named else "foreign"), f"{text}\n{refused}"
    except Exception as error:
        return "foreign", f"{text}\n{type(error).__name__}: {error}"
    return ("right" if found == expected else "wrong"), f"{text}\n{found}\n{expected}"
