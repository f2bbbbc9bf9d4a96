"""Random programs of expressions, branches and loops: plain Python and the staged kernel agree."""

from __future__ import annotations

import itertools
import linecache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilewright as cutlass
import tilewright.cute as cute

NAMES = ("a", "b", "c", "d")
numbered = itertools.count()


@st.composite
def expression(draw, depth=0):
    """Text of an integer expression whose values stay small."""
    kind = draw(st.integers(0, 9 if depth < 3 else 1))
    sub = expression(depth + 1)
    if kind == 0:
        return str(draw(st.integers(-9, 9)))
    if kind == 1:
        return draw(st.sampled_from(NAMES))
    if kind <= 4:
        return f"({draw(sub)} {draw(st.sampled_from('+-*'))} {draw(sub)}) % 251"
    if kind == 5:
        return f"{draw(sub)} {draw(st.sampled_from(['//', '%']))} {draw(st.sampled_from([3, 7, -5]))}"
    if kind == 6:
        return f"({draw(sub)} if {draw(condition(depth + 1))} else {draw(sub)})"
    if kind == 7:
        return f"{draw(st.sampled_from(['min', 'max']))}({draw(sub)}, {draw(sub)})"
    if kind == 8:
        return f"({draw(sub)} {draw(st.sampled_from('&|^'))} {draw(sub)})"
    return f"-{draw(st.sampled_from(NAMES))}"


@st.composite
def condition(draw, depth=0):
    kind = draw(st.integers(0, 5 if depth < 3 else 0))
    compare = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])
    if kind == 1:
        return f"({draw(condition(depth + 1))} {draw(st.sampled_from(['and', 'or']))} {draw(condition(depth + 1))})"
    if kind == 2:
        return f"(not {draw(condition(depth + 1))})"
    if kind == 3:
        names = [draw(st.sampled_from(NAMES)) for _ in range(3)]
        return f"({names[0]} {draw(compare)} {names[1]} {draw(compare)} {names[2]})"
    if kind == 4:
        return f"({draw(st.sampled_from(NAMES))} in ({draw(st.integers(-3, 3))}, {draw(st.sampled_from(NAMES))}))"
    return f"({draw(expression(depth + 2))} {draw(compare)} {draw(expression(depth + 2))})"


@st.composite
def block(draw, depth, indices):
    """Lines of statements; ``indices`` are the loop variables that may be read."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 6 if depth < 3 else 1))
        target = draw(st.sampled_from(NAMES))
        if kind <= 1:
            extra = f" + {draw(st.sampled_from(indices))}" if indices and draw(st.booleans()) else ""
            lines.append(f"{target} = {draw(expression())}{extra}")
        elif kind == 2:
            lines.append(f"{target} += {draw(st.integers(-4, 4))}")
        elif kind == 3:
            first, second = draw(st.permutations(NAMES))[:2]
            lines.append(f"{first}, {second} = {second}, {first}")
        elif kind == 4:
            lines.append(f"if {draw(condition())}:")
            lines += indented(draw(block(depth + 1, indices)))
            if draw(st.booleans()):
                lines.append("else:")
                lines += indented(draw(block(depth + 1, indices)))
        elif kind == 5:
            index = f"i{next(numbered)}"
            bound = draw(st.sampled_from(["3", f"{target} % 4", f"1, {target} % 6, 2", "5, 0, -2"]))
            lines.append(f"for {index} in range({bound}):")
            lines += indented(draw(block(depth + 1, [*indices, index])))
        else:
            counter = f"w{next(numbered)}"
            lines.append(f"{counter} = 0")
            lines.append(f"while {counter} < {target} % 4 and {draw(condition(2))}:")
            lines += indented([*draw(block(depth + 1, [*indices, counter])), f"{counter} += 1"])
    return lines


def indented(lines):
    return [f"    {line}" for line in lines]


def function(lines):
    """The lines as a function that a source file (a made-up one) knows."""
    head = "def program(a, b, c, d):"
    wrap = [f"    {n} = ({n} + 1000) % 2001 - 1000" for n in NAMES]
    text = "\n".join([head, *indented(lines), *wrap, "    return a, b, c, d", ""])
    name = f"<random program {next(numbered)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {}
    exec(compile(text, name, "exec"), scope)
    return scope["program"], text


def check(lines, samples, device="cpu"):
    program, text = function(lines)
    inner = cute.jit(program)

    @cute.kernel
    def body(data: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        results = inner(*(data[tidx, k] for k in range(4)))
        for k in cutlass.range_constexpr(4):
            data[tidx, k] = results[k]

    @cute.jit
    def host(data: cute.Tensor):
        body(data).launch(grid=1, block=data.shape[0])

    data = np.array(samples, np.int32)
    expected = np.array([program(*map(int, row)) for row in samples])
    if device == "cpu":
        host(data)
    else:
        import torch

        moved = torch.from_numpy(data).to(device)
        host(moved)
        data = moved.cpu().numpy()
    assert data.tolist() == expected.tolist(), text


# Python's integers do not wrap and the machine's do: programs are drawn so that all numbers stay far below 2**31.
SAMPLES = st.lists(st.tuples(*[st.integers(-20, 20)] * 4), min_size=1, max_size=33)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(block(0, []), SAMPLES)
def test_random_programs_on_the_simulator(lines, samples):
    check(lines, samples)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(block(0, []), SAMPLES)
def test_random_programs_as_host_code(lines, samples):
    program, text = function(lines)
    staged = cute.jit(program)
    for row in samples[:5]:
        assert staged(*row) == program(*row), text


@pytest.mark.gpu
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(block(0, []), SAMPLES)
def test_random_programs_on_a_gpu(lines, samples):
    check(lines, samples, "cuda")


@pytest.mark.gpu
def test_negation_inside_nested_minima_on_a_gpu():
    """ptxas of CUDA 13.0 loses the sign of a negated operand when it merges two minima (or maxima) on sm_90."""
    lines = ["a = min(0, min(a, -a))", "b = max(c, max(d, -b))"]
    check(lines, [(a, b, c, d) for a in (-2, 0, 2) for b in (-3, 3) for c in (-1, 1) for d in (-2, 2)], "cuda")
