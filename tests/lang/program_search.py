"""Drawn programs of Python's grammar with numbers of all types: what a kernel gives, and what the documents say.

A case is a number; it draws the text of a function of four numbers. As plain Python the function runs on
:mod:`tests.lang.typed_numbers`, lane by lane; staged, it is called in a kernel with a thread for each lane. Its results
are equal, bit by bit and in their types, or the program is refused at a line of its own.

``python -m tests.lang.program_search --cases 2000 --jobs 2`` runs many of them, and prints what is wrong;
``--device cuda`` runs them on the GPU.
"""

from __future__ import annotations

import itertools
import linecache
import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.typed_numbers import DTYPES, FLOATS, INTEGERS, KINDS, NAMES, Number, Undefined, convert
from tests.machines import on_gpu
from tests.search_options import leave, search
from tilewright.errors import TilewrightError

LANES = 6
PARAMETERS = ("a", "b", "c", "d")
BITS = "& | ^ << >>".split()
DIVIDE = "/ // % divmod".split()
WHOLE = (*INTEGERS, "Boolean")
COMPARE = "< <= == != > >=".split()
LITERALS = [0, 1, 2, 3, 5, 7, -1, -2, -3, 16, 31, 63, 127, 128, 200, 255, 256, 40000, 65535, 65536]
LITERALS += [2**31 - 1, 2**31, -(2**31), 2**32, 2**40, True, False, 0.5, -1.5, 2.0, 3.0, 0.1]
NUMPY = ["np.int64(3)", "np.int8(-2)", "np.uint8(200)", "np.int32(7)", "np.float32(0.5)", "np.bool_(True)"]
numbered = itertools.count()


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Box:
    v: Any

    def add(self, n: Any) -> Any:
        self.v = self.v + n
        return self.v


class Drawn:
    """The text of a program. Each variable has a kind and keeps it; ``indices`` are those of the loops around."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counter = itertools.count()
        self.kinds = {name: self.random.choice(KINDS) for name in PARAMETERS}
        self.variables: dict[str, str] = dict(self.kinds)
        self.functions: list[tuple[str, int]] = []
        self.indices: list[str] = []
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            name, kind = f"v{next(self.counter)}", self.random.choice(KINDS)
            lines.append(f"{name} = {kind}({self.expression()})")
            self.variables[name] = kind
        for _ in range(self.random.randint(2, 6)):
            lines += self.statement(0)
        shown = [*self.random.sample(list(self.variables), 3), *(self.expression() for _ in range(2))]
        self.text = "\n".join(["def program(a, b, c, d):", *indented(lines), f"    return {', '.join(shown)}", ""])

    def fresh(self, what: str) -> str:
        return f"{what}{next(self.counter)}"

    # -- expressions ---------------------------------------------------------------------------------------------

    def atom(self) -> str:
        drawn = self.random.random()
        if drawn < 0.65:
            return self.random.choice([*self.variables, *self.indices])
        if drawn < 0.7:
            return self.random.choice(NUMPY)
        literal = self.random.choice(LITERALS)
        return f"({literal})" if isinstance(literal, (int, float)) and literal < 0 else str(literal)

    def number(self, depth: int) -> str:
        """An expression that is no literal, so that operators of two of them are the language's."""
        found = self.expression(depth)
        words = set(re.findall(r"\w+", found))
        return found if words & set(self.variables) else self.random.choice(list(self.variables))

    def expression(self, depth: int = 0) -> str:
        kind = self.random.randint(0, 15) if depth < 3 else 0
        sub = depth + 1
        forms: dict[int, Callable[[], str]] = {
            4: lambda: self.bits(sub),
            5: lambda: f"{self.random.choice(['-', 'abs', 'round', '+'])}({self.number(sub)})",
            6: lambda: f"{self.random.choice(KINDS)}({self.expression(sub)})",
            7: lambda: self.choice_of_two(sub),
            8: lambda: f"{self.random.choice(['min', 'max'])}({self.number(sub)}, {self.expression(sub)})",
            9: lambda: self.condition(sub),
            10: lambda: self.quotient(sub),
            11: lambda: self.gathered(sub),
            12: lambda: self.called(sub),
            13: lambda: f"(lambda x, y={self.number(sub)}: x + y)({self.number(sub)})",
            14: lambda: f"Pair({self.number(sub)}, 3)._replace(y={self.number(sub)}).{self.random.choice('xy')}",
        }
        if kind in forms:
            return forms[kind]()
        if kind == 0:
            return self.atom()
        left, right = (self.number(sub), self.expression(sub))[:: self.random.choice([1, -1])]
        return f"({left} {self.random.choice('+-*')} {right})"

    def whole(self, depth: int) -> str:
        """A number that has bits."""
        found = [name for name, kind in self.variables.items() if kind in WHOLE]
        if found and self.random.random() < 0.4:
            return self.random.choice(found)
        return f"{self.random.choice(WHOLE)}({self.expression(depth)})"

    def bits(self, depth: int) -> str:
        sign = self.random.choice(BITS)
        right = self.whole(depth) if self.random.random() < 0.7 else self.random.choice("1 2 3 7 np.int8(2)".split())
        left = (
            self.whole(depth) if self.random.random() < 0.8 or "(" not in right else self.random.choice("1 5".split())
        )
        return f"({left} {sign} {right})"

    def quotient(self, depth: int) -> str:
        sign = self.random.choice(DIVIDE)
        left, right = self.number(depth), self.random.choice("1 2 3 7 -2 -5 0.5 100 np.int32(7)".split())
        if self.random.random() < 0.3:
            right = f"({self.random.choice(list(INTEGERS))}({self.expression(depth)}) | 1)"
        if sign == "divmod":
            return f"divmod({left}, {right})[{self.random.randint(0, 1)}]"
        return f"({left} {sign} {right})"

    def choice_of_two(self, depth: int) -> str:
        kind = self.random.choice(KINDS)
        sides = [f"{kind}({self.expression(depth)})" for _ in range(2)]
        return f"({sides[0]} if {self.condition(depth)} else {sides[1]})"

    def gathered(self, depth: int) -> str:
        """A comprehension, a slice, a tuple or a dict whose elements are numbers of the run."""
        one, two = self.number(depth), self.number(depth)
        return self.random.choice(
            [
                f"sum([x + {one} for x in ({two}, {self.atom()})])",
                f"[{one}, {two}, {self.atom()}][::-1][1]",
                f"({one}, *[{two}, {one}][1:])[-1]",
                f"{{'p': {one}, **{{'q': {two}}}}}['q']",
                f"[y for x in range_constexpr(3) if x > 1 for y in ({one}, x)][0]",
                f"dict(enumerate([{one}, {two}]))[1]",
                f"sum(x * y for x, y in zip(({one}, {two}), (1, 2)))",
                f"list(map(lambda x: x - {one}, ({two},)))[0]",
            ]
        )

    def called(self, depth: int) -> str:
        if not self.functions:
            return self.atom()
        name, count = self.random.choice(self.functions)
        given = ", ".join(self.number(depth) for _ in range(count))
        return f"{name}({given})" if self.random.random() < 0.7 else f"{name}(*({given},))"

    def condition(self, depth: int) -> str:
        kind = self.random.randint(0, 6) if depth < 3 else 0
        compare = [self.random.choice(COMPARE) for _ in range(2)]
        if kind == 1:
            word = self.random.choice(["and", "or"])
            return f"({self.condition(depth + 1)} {word} {self.condition(depth + 1)})"
        if kind == 2:
            return f"Boolean({self.number(depth + 1)})"
        if kind == 3:
            middle = self.number(depth + 1)
            return f"({self.expression(depth + 1)} {compare[0]} {middle} {compare[1]} {self.expression(depth + 1)})"
        if kind == 4:
            word = self.random.choice(["in", "not in"])
            return f"Boolean({self.number(depth + 1)} {word} ({self.atom()}, {self.number(depth + 1)}))"
        if kind == 5:
            word, pair = self.random.choice(["any", "all"]), f"({self.number(depth + 1)}, {self.number(depth + 1)})"
            return f"Boolean({word}(x > {self.atom()} for x in {pair}))"
        return f"({self.number(depth + 1)} {compare[0]} {self.expression(depth + 1)})"

    # -- statements ----------------------------------------------------------------------------------------------

    def assigned(self) -> list[str]:
        name = self.random.choice(list(self.variables))
        return [f"{name} = {self.variables[name]}({self.expression()})"]

    def block(self, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        simple = [self.assigned, self.assigned, self.updated, self.swapped, self.unpacked, self.named, self.changed]
        nested = [self.branch, self.branch, self.loop, self.while_loop, self.function, self.with_block, self.stopped]
        rare = [self.refused] if self.random.random() < 0.05 else []
        if depth < 3 and self.random.random() < 0.45:
            return self.random.choice([*nested, *rare])(depth)
        return self.random.choice(simple)()

    def updated(self) -> list[str]:
        integers = [name for name, kind in self.variables.items() if kind != "Boolean"] or ["a"]
        name = self.random.choice(integers)
        sign = self.random.choice("+ - *".split() if self.variables[name] in FLOATS else "+ - * // % & | ^".split())
        return [f"{name} {sign}= {self.random.choice([1, 2, 3, 5])}"]

    def swapped(self) -> list[str]:
        name = self.random.choice(list(self.variables))
        others = [other for other, kind in self.variables.items() if kind == self.variables[name]]
        other = self.random.choice(others)
        return [f"{name}, {other} = {other}, {name}"] if other != name else self.assigned()

    def unpacked(self) -> list[str]:
        name = self.random.choice(list(self.variables))
        kind, rest = self.variables[name], self.fresh("r")
        return [
            f"{name}, *{rest} = {kind}({self.expression(2)}), {self.expression(2)}, {self.expression(2)}",
            f"{name} = {kind}({rest}[{self.random.choice([0, -1])}])",
        ]

    def named(self) -> list[str]:
        name, once = self.random.choice(list(self.variables)), self.fresh("t")
        return [f"{name} = {self.variables[name]}(({once} := {self.number(1)}) + {once})"]

    def changed(self) -> list[str]:
        """An object that changes in place, made here or around."""
        name, box = self.random.choice(list(self.variables)), self.fresh("h")
        kind = self.variables[name]
        made, change, read = self.random.choice(
            [
                ("[{0}, 1]", "{1}[0] = {2}", "{1}[0]"),
                ("dict(k={0})", "{1}['k'] = {2}", "{1}['k']"),
                ("Box({0})", "{1}.v = {2}", "{1}.v"),
                ("Box({0})", "{1}.v += {2}", "{1}.v"),
            ]
        )
        lines = [f"{box} = {made.format(f'{kind}({self.expression(2)})')}"]
        inner = change.format(None, box, f"{kind}({self.expression(2)})")
        if self.random.random() < 0.6:
            lines += [f"if {self.condition(2)}:", f"    {inner}"]
        else:
            lines.append(inner)
        return [*lines, f"{name} = {kind}({read.format(None, box)})"]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.condition(1)}:", *indented(self.block(depth + 1))]
        if self.random.random() < 0.3:
            lines += [f"elif {self.condition(1)}:", *indented(self.block(depth + 1))]
        if self.random.random() < 0.5:
            lines += ["else:", *indented(self.block(depth + 1))]
        return lines

    def loop(self, depth: int) -> list[str]:
        index, bound = self.fresh("i"), f"Int32({self.number(2)}) % {self.random.randint(1, 4)}"
        over = self.random.choice(
            [
                f"range({bound})",
                f"range({bound}, 5, 2)",
                f"range({bound}, -2, -1)",
                "range(2, -1, -1)",
                "range_constexpr(2)",
                "range_constexpr(3, 0, -2)",
                f"({self.number(2)}, {self.number(2)})",
            ]
        )
        self.indices.append(index)
        lines = [f"for {index} in {over}:", *indented(self.block(depth + 1))]
        self.indices.remove(index)
        if self.random.random() < 0.2:
            lines += ["else:", *indented(self.block(depth + 1))]
        return lines

    def while_loop(self, depth: int) -> list[str]:
        count = self.fresh("w")
        self.indices.append(count)
        body = [*self.block(depth + 1), f"{count} += 1"]
        self.indices.remove(count)
        head = f"while {count} < {self.random.randint(1, 3)} and {self.condition(2)}:"
        return [f"{count} = Int32(0)", head, *indented(body)]

    def function(self, depth: int) -> list[str]:
        """A nested function: parameters, a default, stars, what it reads of the variables around."""
        name, read = self.fresh("f"), self.expression(2)
        form, count = self.random.choice([("x, y", 2), ("x, y=2", 1), ("*x", 2), ("x, *, k=3", 1), ("x, /", 1)])
        given = {"x, y": "x + y", "x, y=2": "x * y", "*x": "x[0] - x[1]", "x, *, k=3": "x + k", "x, /": "-x"}[form]
        body = [f"u = {given}"]
        if self.random.random() < 0.4:
            body += ["if const_expr(1 < 2):", f"    return u + {self.atom()}"]
        kind = self.random.choice(KINDS)
        body += [f"w = {kind}(u)", f"if {self.condition(2)}:", f"    w = {kind}({read})", "return w"]
        self.functions.append((name, count))
        if depth:  # one that a branch defines has a value there only
            self.functions.pop()
        return [f"def {name}({form}):", *indented(body)]

    def with_block(self, depth: int) -> list[str]:
        return ["with nullcontext():", *indented(self.block(depth + 1))]

    def stopped(self, depth: int) -> list[str]:
        """``break`` or ``continue`` that Python decides."""
        index, word = self.fresh("i"), self.random.choice(["break", "continue"])
        body = [f"if {index} == {self.random.randint(0, 2)}:", f"    {word}", *self.block(depth + 1)]
        ended = ["else:", *indented(self.block(depth + 1))] if self.random.random() < 0.5 else []
        return [f"for {index} in range_constexpr(3):", *indented(body), *ended]

    def refused(self, depth: int) -> list[str]:
        """What has no meaning in a kernel, or none where run-time values decide."""
        name = self.random.choice(list(self.variables))
        test = self.condition(2)
        return self.random.choice(
            [
                ["try:", *indented(self.assigned()), "finally:", *indented(self.assigned())],
                [f"match {name}:", "    case 1:", f"        {name} = {self.variables[name]}(2)"],
                ["for _ in range(3):", f"    if {test}:", "        break", *indented(self.assigned())],
                ["for _ in range(3):", f"    if {test}:", "        continue", *indented(self.assigned())],
                [f"if {test}:", f"    return {', '.join([name] * 5)}"],
                [f"del {name}", f"{name} = {self.variables[name]}(1)"],
                [f"{name} = len(f'{{{name}}}')"],
                [f"assert {test} or True, f'{{{name}}}'"],
            ]
        )


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def drawn_value(choose: random.Random, kind: str) -> Any:
    if kind == "Boolean":
        return choose.random() < 0.5
    if kind in FLOATS:
        return convert(kind, choose.choice([0.0, 1.0, -1.5, 2.5, 3.0, -7.25, 100.0, 0.1, choose.uniform(-9, 9)])).value
    bits, signed = INTEGERS[kind]
    low = -(1 << (bits - 1)) if signed else 0
    high = low + (1 << bits) - 1
    return choose.choice([0, 1, 2, 3, 5, low, high, high - 1, convert(kind, -3).value, choose.randint(low, high)])


def compiled(text: str, names: dict[str, Any]) -> Any:
    """The text as a function that a (made-up) source file knows."""
    file = f"<drawn program {next(numbered)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"np": np, "nullcontext": nullcontext, "Box": Box, "Pair": Pair, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["program"]


STAGED = {**{kind: getattr(cutlass, kind) for kind in KINDS}, "const_expr": cutlass.const_expr}
STAGED["range_constexpr"] = cutlass.range_constexpr


def staged(text: str, arrays: dict[str, np.ndarray], device: str = "cpu") -> tuple[list[str], np.ndarray]:
    """The kinds of the results, and of each lane their bits in 64 bits (floats as Float64)."""
    inner = cute.jit(compiled(text, STAGED))
    kinds: list[str] = []

    @cute.kernel
    def body(args: tuple, out: cute.Tensor):
        lane, _, _ = cute.arch.thread_idx()
        results = inner(*[array[lane] for array in args])
        kinds[:] = [type(r).__name__ for r in results]
        for i in cutlass.range_constexpr(len(results)):
            if cutlass.const_expr(type(cutlass.as_numeric(results[i])).is_integer):
                out[lane, i] = cutlass.Int64(results[i]).bitcast(cutlass.Float64)
            else:
                out[lane, i] = cutlass.Float64(results[i])

    @cute.jit
    def host(args: tuple, out: cute.Tensor):
        body(args, out).launch(grid=1, block=LANES)

    out = np.zeros((LANES, 5))
    given = tuple(arrays[name] for name in PARAMETERS)
    if device == "cpu":
        host(given, out)
        return kinds, out
    there, away = on_gpu(out), tuple(map(on_gpu, given))
    cute.compile[cute.PtxasOptions("--fmad=false")](host, away, there)(away, there)  # one rounding an operation
    return kinds, there.cpu().numpy()


def expected(text: str, arrays: dict[str, list[Any]], kinds: dict[str, str]) -> list[tuple[Any, ...] | None]:
    """The results of each lane; None where nothing is expected."""
    program, rows = compiled(text, NAMES), []
    for lane in range(LANES):
        try:
            rows.append(program(*(Number(kinds[name], arrays[name][lane]) for name in PARAMETERS)))
        except (Undefined, ArithmeticError, TypeError):
            rows.append(None)
    return rows


def hosted(text: str, values: dict[str, list[Any]], kinds: dict[str, str], lane: int) -> tuple[Any, ...]:
    """The results of a call of the program as host code, with the numbers of one lane."""
    given = [STAGED[kinds[name]](values[name][lane]) for name in PARAMETERS]
    found: tuple[Any, ...] = cute.jit(compiled(text, STAGED))(*given)
    return found


def is_number(found: Any, value: Any) -> bool:
    value = value.value if isinstance(value, Number) else value
    exact = not isinstance(value, (float, *FLOATS.values()))
    return bool(found == (int(value) if exact else float(value)) or (found != found and value != value))


def agrees(value: Any, bits: np.ndarray, kind: str) -> bool:
    value = value.value if isinstance(value, Number) else value
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return kind not in FLOATS and int(bits.view(np.int64)) == convert("Int64", int(value)).value
    value = float(value)
    return bool(bits == value or (bits != bits and value != value))


def verdict(seed: int, device: str = "cpu") -> tuple[str, str]:
    """``right``, ``refused``, ``undefined`` (Python gives no number in some lane), ``wrong``, ``foreign`` (an error of
    another kind, or without a line of the program); and the program with what there is to see."""
    drawn = Drawn(seed)
    choose = random.Random(seed)
    values = {name: [drawn_value(choose, kind) for _ in range(LANES)] for name, kind in drawn.kinds.items()}
    text = drawn.text
    rows = expected(text, values, drawn.kinds)
    if None in rows:
        return "undefined", text
    arrays = {name: np.array(values[name], DTYPES[kind]) for name, kind in drawn.kinds.items()}
    try:
        kinds, out = staged(text, arrays, device)
        calls = {lane: hosted(text, values, drawn.kinds, lane) for lane in (0, LANES - 1)}
    except TilewrightError as error:
        named = "<drawn program" in str(error)
        return ("refused" if named else "foreign"), f"{text}\n{error}"
    except Exception as error:
        return "foreign", f"{text}\n{type(error).__name__}: {error}"
    for lane, row in enumerate(rows):
        assert row is not None
        for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
            if lane in calls and not is_number(calls[lane][place], value):
                return "wrong", f"{text}\nas host code, result {place} of lane {lane}: {calls[lane]}, expected {row}"
            typed = not isinstance(value, Number) or value.kind == kind or kind in ("bool", "int", "float")
            if not typed or not agrees(value, out[lane, place], kind):
                given = ", ".join(f"{name} = {drawn.kinds[name]}({values[name][lane]})" for name in PARAMETERS)
                bits = out[lane, place]
                found = bits if kind in FLOATS else int(bits.view(np.int64))
                return "wrong", f"{text}\nresult {place} for {given}: expected {value!r}, found {kind}({found})"
    return "right", text


if __name__ == "__main__":
    leave(search(__doc__, verdict, ("right", "refused", "undefined")))
