"""Loops over known ranges whose index names registers: they are unrolled, as ``range_constexpr`` unrolls them."""

from __future__ import annotations

import io
import itertools
import linecache
import random
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.cuda.build import needs_nvrtc
from tilewright import Float32, Int32
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, StagingError, TilewrightError
from tilewright.testing import per_thread

THREADS, ROWS, COLUMNS = 32, 4, 8


@dataclass
class Box:
    n: Any

    def add(self, n: Any) -> None:
        self.n = self.n + n


class Two(NamedTuple):
    x: Any
    y: Any


def compiled(program: Any) -> tuple[np.ndarray, Any]:
    """What ``program(x, y, r, atom, t, box)`` leaves in y, and its executor: x and y are a thread's part of memory, r
    registers, all of ROWS x COLUMNS; the kernel adds ``box.n`` to the first element in the end."""
    body = cute.jit(program)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        x, y = (cute.local_tile(whole, (ROWS, COLUMNS), (0, t)) for whole in (x, y))
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=32)
        r = cute.make_rmem_tensor((ROWS, COLUMNS), Float32)
        r.fill(0.0)
        box = Box(Int32(1))
        body(x, y, r, atom, t, box)
        y[0] = y[0] + box.n.to(Float32)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=THREADS)

    x = np.arange(ROWS * COLUMNS * THREADS, dtype=np.float32).reshape(COLUMNS * THREADS, ROWS).T
    y = np.zeros_like(x.T).T
    given = [from_dlpack(a, assumed_align=16) for a in (x, y)]
    made = cute.compile(host, *given)
    made(*given)
    return y, made


# -- drawn programs ----------------------------------------------------------------------------------------------------

numbered = itertools.count()


class Drawn:
    """The text of a program. ``indices`` are those of the loops around, with their bounds; ``needed`` those that name
    registers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.needed: set[str] = set()
        self.names = (f"i{n}" for n in itertools.count())

    def number(self, indices: dict[str, int], register: bool) -> str:
        """A column, below COLUMNS."""
        name = self.random.choice([*indices, ""])
        if register and name:
            self.needed.add(name)
        if not name:
            return str(self.random.randrange(COLUMNS))
        forms = [name, f"{name} * 2 % 8", f"{indices[name] - 1} - {name}", f"({name} if {name} > 1 else 5)"]
        return self.random.choice(forms)

    def statement(self, indices: dict[str, int]) -> list[str]:
        """One that copies, counts or changes an object."""
        index, column = self.random.choice([*indices, "t", "c"]), self.number(indices, False)
        kind = self.random.randint(0, 8)
        if kind <= 1:
            memory = self.random.choice("xy")
            return [f"cute.copy(atom, {memory}[None, {column}], r[None, {self.number(indices, True)}])"]
        if kind == 2:
            return [f"part = of(r, {self.number(indices, True)})", f"cute.copy(atom, part, y[None, {column}])"]
        others = (
            f"r[{self.random.randrange(ROWS)}, {column}] = (c + pair[0]).to(Float32)",
            f"c = plus(c, {index})",
            f"pair = (pair[1], pair[0] + {index})",
            f"items[0], items[1] = items[1], items[0] + {index}",
            f"box.add({index})",
            f"put(y, {column}, c + pair[1] + items[0])",
        )
        return [others[kind - 3]]

    def block(self, depth: int, indices: dict[str, int]) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.randint(0, 8 if depth < 3 else 4)
            if kind <= 4:
                lines += self.statement(indices)
            elif kind <= 6:
                index, bound = next(self.names), self.random.randint(3, 4)  # of fewer, some numbers are known
                inner = self.block(depth + 1, {**indices, index: bound})
                lines += [f"for {index} in RANGE_{index}({bound}):", *indented(inner)]
            elif kind == 7:
                lines += [f"if {self.random.choice(['t > 3', 'c % 2 == 0', *(f'{i} < 2' for i in indices)])}:"]
                lines += indented(self.block(depth + 1, indices))
            else:
                counter = next(self.names)
                lines += [f"{counter} = t * 0", f"while {counter} < t % 3:"]
                lines += indented([*self.block(depth + 1, indices), f"{counter} += 1"])
        return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@cute.jit
def put(y: cute.Tensor, column: Any, c: Any) -> None:
    y[1, column] = y[1, column] + c.to(Float32)


@cute.jit
def plus(c: Any, n: Any) -> Any:
    for _ in range(2):
        c = c + n
    return c


def of(r: cute.Tensor, column: Any) -> cute.Tensor:
    return r[None, column]


def function(lines: list[str]) -> Any:
    begin, end = "c, pair, items = t + 1, (t, t * 5), [t, t * 2]", "put(y, 0, c + pair[0] + items[0])"
    text = "\n".join(["def program(x, y, r, atom, t, box):", *indented([begin, *lines, end]), ""])
    name = f"<unrolled program {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"cute": cute, "Float32": Float32, "range_constexpr": cutlass.range_constexpr}
    scope |= {"put": put, "plus": plus, "of": of}
    exec(compile(text, name, "exec"), scope)
    return scope["program"]


@pytest.mark.unchecked
@pytest.mark.parametrize("seed", range(20))
def test_drawn_loops_are_those_of_range_constexpr(seed) -> None:
    drawn = Drawn(seed)
    text = "\n".join(drawn.block(0, {}))
    unrolled = re.sub(r"RANGE_(\w+)", lambda m: "range_constexpr" if m[1] in drawn.needed else "range", text)
    (y, made), (expected, other) = (
        compiled(function(form.splitlines())) for form in (re.sub(r"RANGE_\w+", "range", text), unrolled)
    )
    np.testing.assert_array_equal(y, expected)
    assert without_lines(made.__cuda__) == without_lines(other.__cuda__), text
    assert str(made.kernels[0]) == str(other.kernels[0]), text
    if seed == 3:
        needs_nvrtc()
        assert made.__cubin__, "NVRTC compiles it"


def without_lines(text: str) -> str:
    """The text of a kernel without the names of the files that it was made of."""
    return re.sub(r"<unrolled program \d+>|0x[0-9a-f]+|_[0-9a-f]{8,}", "", text)


# -- what a trace that is thrown away leaves ---------------------------------------------------------------------------


def test_what_a_thrown_away_trace_did_is_undone(capsys) -> None:
    """Shared memory, noted variables, carried counters and objects, texts: all once for each iteration."""

    def form(steps: Any) -> Any:
        def program(x, y, r, atom, t, box):
            stage, count = 0, 0
            for i in steps(4):
                print("copied", flush=True)
                words = cute.arch.alloc_smem(Float32, 32)
                cute.printf("iteration %d", i)
                cute.copy(atom, x[None, i], r[None, stage])
                cute.arch.store(words + t, r[0, stage])
                cute.copy(atom, r[None, stage], y[None, i])
                kept = count * 2
                stage = 1 - stage
                count += 1
                box.n += kept
            r[0] = Int32(count).to(Float32)
            cute.copy(atom, r[None, 0], y[None, 7])

        return program

    (y, made), (expected, other) = (compiled(form(steps)) for steps in (cutlass.range, cutlass.range_constexpr))
    np.testing.assert_array_equal(y, expected)
    assert y[0, 0] == 0 + 1 + 0 + 2 + 4 + 6 and y[0, 7] == 4
    kernels = [compiled_.kernels[0] for compiled_ in (made, other)]
    assert [k.attrs["smem_bytes"] for k in kernels] == [4 * 4 * 32] * 2
    names = [[v.name for v in k.variables if v.name not in ("i", "count", "stage")] for k in kernels]
    assert names[0] == names[1]
    assert [sum(op.opcode == "printf" for op in k.body.walk()) for k in kernels] == [4, 4]
    printed = capsys.readouterr().out.split("\n")
    assert printed.count("copied") == 8 and printed.count("iteration 3") == 2 * THREADS


def test_traces_that_are_repeated_leave_nothing_either() -> None:
    """A loop is traced again when its first trace shows that an object changes in it."""

    def program(x, y, r, atom, t, box):
        n = t * 0
        while cute.arch.load(cute.arch.alloc_smem(Int32, 8)) * 0 + n < t:
            words = cute.arch.alloc_smem(Float32, 32)
            cute.arch.store(words + t, 1.0)
            box.add(1)
            n += 1
        for _ in range(t):
            words = cute.arch.alloc_smem(Float32, 32)
            cute.arch.store(words + t, 1.0)
            box.add(1)

    kernel = compiled(program)[1].kernels[0]
    assert kernel.attrs["smem_bytes"] == 4 * (8 + 32 + 32)
    assert [v.name for v in kernel.variables].count("words") == 2


def test_numbers_have_the_types_of_the_run_time_loop() -> None:
    """A trace has seen Int32, so the iterations see Int32: methods of numbers work, and products have the same type."""

    def note(*numbers: Any) -> None:
        assert all(isinstance(n, cutlass.Numeric) for n in numbers)

    def program(x, y, r, atom, t, box):
        total, pair, flag, items = 0, (0, 0.5), True, Two(0, t)
        box.n = 3
        for i in range(3):
            note(i, total, *pair, flag, *items)
            cute.copy(atom, x[None, i], r[None, i])
            total += 1
            pair = (pair[0] + 1, 0.25)
            flag = False
            items = Two(items.x + 1, 7)
            box.n = 5
            r[1, i] = i.to(Float32) / 2 + total.to(Float32)
            cute.copy(atom, r[None, i], y[None, i])
        note(total, *pair, flag, box.n, *items)

    y, _ = compiled(program)
    assert y[1, :3].tolist() == [1.0, 2.5, 4.0]


def test_what_an_iteration_assigns_stays_pythons() -> None:
    """A variable without a value before the loop is not carried: it may hold what no type of the machine does."""

    def program(x, y, r, atom, t, box):
        for i in range(3):
            mask, name = 1 << 200, "r"
            cute.copy(atom, x[None, i], r[None, i])
            y[0, i] = Float32(mask >> 199) + len(name)

    assert compiled(program)[0][0, :3].tolist() == [4.0, 3.0, 3.0]


def test_only_the_loops_that_are_needed_are_unrolled() -> None:
    def program(x, y, r, atom, t, box):
        for i in range(4):
            for j in range(3):
                for k in range(2):
                    box.n = box.n + k
                    cute.copy(atom, x[None, i], r[None, j])

    loops = [op for op in compiled(program)[1].kernels[0].body.walk() if op.opcode == "for"]
    assert len(loops) == 1 + 3 and "i" == loops[0].regions[0].args[0].hint


def test_a_view_of_other_registers_is_refused_only_where_it_is_read() -> None:
    def program(x, y, r, atom, t, box):
        part = r[None, 2]
        for i in range(t):  # a run-time loop
            if i > 1:
                part = r[None, 3]
                cute.copy(atom, part, y[None, 0])
            if cutlass.const_expr(reads):
                cute.copy(atom, part, y[None, 1])

    reads = False
    compiled(program)
    reads = True
    with pytest.raises(StagingError, match=r"'part' has no value here: the branches of the run-time if"):
        compiled(program)


def test_loops_in_other_constructs_and_functions() -> None:
    @cute.jit
    def load(x, r, atom, n):
        for i in range(2):
            cute.copy(atom, x[None, n + i], r[None, n + i])

    def each(x, r, atom):  # not marked: its loop is Python's
        load(x, r, atom, 0)

    def program(x, y, r, atom, t, box):
        each(x, r, atom)
        if t < 16:
            for i in range(4):
                load(x, r, atom, 2 + i)
                if i == 1:
                    cute.copy(atom, r[None, i + 1], y[None, i])
        n = t * 0
        while n < 2:
            for i in range(2, 4):
                cute.copy(atom, r[None, i], y[None, i])
            n += 1
        with cute.arch.elect_one():
            for i in range(7, 5, -1):
                cute.copy(atom, r[None, 0], y[None, i])

    y, made = compiled(program)
    x = np.arange(ROWS * COLUMNS * THREADS).reshape(COLUMNS * THREADS, ROWS).T
    expected = np.zeros_like(x)
    for t in range(16):
        expected[:, 8 * t + 1 : 8 * t + 4] = x[:, [8 * t + 2, 8 * t + 2, 8 * t + 3]]
    expected[:, 6:8] = x[:, [0, 0]]
    expected[0, ::8] += 1
    np.testing.assert_array_equal(y, expected)


def test_recast_registers_and_those_of_an_mma() -> None:
    @cute.jit
    def program(t: Any) -> Any:
        words = cute.make_rmem_tensor(4, Float32)
        for i in range(4):
            words[i] = t.to(Float32)
        halves = cute.make_tensor(cute.recast_ptr(words.iterator, dtype=cutlass.Uint16), cute.make_layout(8))
        total = Int32(0)
        for i in range(8):
            total += Int32(halves[i])
        pairs = cute.make_tensor(words.iterator, cute.make_layout((2, 2)))
        for i in range(2):
            total += cute.recast_tensor(pairs[None, i], cutlass.Uint64)[0].to(Int32) * 0
        mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(Float32))
        sums, a = (cute.make_rmem_tensor((1, 1, 4), Float32) for _ in range(2))
        sums.fill(0.0)
        for i in range(4):
            a[0, 0, i] = i.to(Float32)
            for _ in range(2):
                cute.gemm(mma, sums[None, None, i], a[None, None, i], a[None, None, i], sums[None, None, i])
        return total + sums[0, 0, 3].to(Int32)

    bits = int(np.float32(2).view(np.uint32)) >> 16
    assert per_thread(program, 3)[2] == 4 * bits + 18


# -- refusals ----------------------------------------------------------------------------------------------------------


def _bounds(x, y, r, atom, t, box):
    for i in range(t):
        cute.copy(atom, x[None, i], r[None, i])


def _thread(x, y, r, atom, t, box):
    for i in range(2):
        cute.copy(atom, x[None, i], r[None, i + t])


def _while(x, y, r, atom, t, box):
    n = 0
    while n < t:
        cute.copy(atom, x[None, n], r[None, n])
        n += 1


def _long(x, y, r, atom, t, box):
    for i in range(2048):
        cute.copy(atom, x[None, 0], r[None, i % 2])


def _carried(x, y, r, atom, t, box):
    n = t
    for i in range(2):
        cute.copy(atom, x[None, i], r[None, n])
        n = n + 1


def _grows(x, y, r, atom, t, box):
    found = [0]
    for i in range(2):
        found.append(1)
        cute.copy(atom, x[None, i], r[None, i])


@pytest.mark.parametrize(
    "program, message",
    [
        (
            _bounds,
            r"'i', the index of the run-time for loop at line \d+, whose bounds are known only when it runs: loop ",
        ),
        (_thread, "indexed at run time, by 't', which is known only when it runs: give it a number"),
        (_while, r"by 'n' that the run-time while loop at line \d+ carries: give it"),
        (_long, r"it would be unrolled 2048 times\. Split it: an outer loop"),
        (_carried, "by 't', which is known only when it runs"),
        (_grows, r"'found' changes its length in the run-time for loop"),
    ],
)
def test_what_stays_refused_says_which_index(program, message) -> None:
    with pytest.raises((ConstraintError, StagingError), match=message) as found:
        compiled(program)
    assert isinstance(found.value, TilewrightError) and __file__ in str(found.value)


def test_what_was_printed_before_an_error_is_shown(capsys) -> None:
    def program(x, y, r, atom, t, box):
        for i in range(t):
            print("here")
            cute.copy(atom, x[None, i], r[None, i])

    with pytest.raises(ConstraintError):
        compiled(program)
    assert capsys.readouterr().out == "here\n"


def test_print_flushes_the_file_that_it_is_given() -> None:
    class File(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    file = File()

    @cute.jit
    def program(t):
        print("kept", file=file)
        print("flushed", end="", file=file, flush=True)
        return t

    per_thread(program, 1)
    assert (file.getvalue(), file.flushed) == ("kept\nflushed", 1)
