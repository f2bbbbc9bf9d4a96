"""The short way of repeated calls: what it passes on, and that nothing wrong slips through it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.base_dsl.typing import get_c_pointers, get_mlir_types
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.runtime import DevicePointer
from tilewright.lang.arguments import arrays
from tilewright.lang.launch.machine import register_machine


class Addressed:
    """A kernel of a machine that needs addresses only; ``calls`` are those that came the short way."""

    def __init__(self, calls: list[Any], long: list[Any]) -> None:
        self.calls, self.long = calls, long

    def __call__(self, config: Any, args: Any) -> None:
        self.long.append((config, [a.address if isinstance(a, DevicePointer) else a for a in args]))

    def on(self, device: str) -> Any:
        assert device == "cpu"
        return lambda config, args: self.calls.append((config, list(args)))


@pytest.fixture
def machine() -> Iterator[SimpleNamespace]:
    """Stands in for a GPU: arrays of the CPU, launches that are written down."""
    seen = SimpleNamespace(short=[], long=[])
    module: Any = SimpleNamespace(machine=lambda: SimpleNamespace(load=lambda *_: Addressed(seen.short, seen.long)))
    sys.modules["addressed_machine"] = module
    register_machine("cpu", "addressed_machine")
    yield seen
    register_machine("cpu", "tilewright.sim.machine")


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, n: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    if tidx < n:
        y[tidx, 0] = x[tidx, 0] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, stream):
    scale_kernel(x, y, factor, x.shape[0]).launch(grid=(x.shape[1], y.shape[0], 1), block=32, stream=stream)


def test_prepared_and_general_calls_pass_the_same_values(machine: SimpleNamespace) -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    compiled = cute.compile(scale, x, y, 1.0, 0)
    for n in (6, 9, 6, 9):
        a, b = torch.zeros(n, 4), torch.zeros(n, 8)[:, :4]
        before = len(machine.short)
        compiled(a, b, 2.5, 7)
        repeated = len(machine.short) > before
        config, values = (machine.short if repeated else machine.long)[-1]
        assert (config.grid, config.stream) == ((4, n, 1), 7)
        assert values[0] == a.data_ptr() and b.data_ptr() in values and values[-2:] == [2.5, n]
    assert len(machine.short) == len(machine.long) == 2, "each pair of shapes takes the long way once"
    compiled(x, torch.zeros(6, 8)[:, :4], 3, 7)
    assert machine.long[-1][1][-2:] == [3.0, 6], "an int for a float is converted"


def test_direct_calls_take_the_short_way(machine: SimpleNamespace) -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    for _ in range(4):
        scale(x, y, 1.0, 0)
    assert len(machine.short) == 2 and len(machine.long) == 2
    scale(x.half(), y, 1.0, 0)
    assert len(machine.long) == 3, "another dtype is another specialisation"


class Epilogue(NamedTuple):
    bias: cute.Tensor
    factor: cutlass.Float32
    stage: cutlass.Constexpr[int] = 2


class Counted(NamedTuple):
    """Its own methods pass one more than it holds, if they see what it holds."""

    x: Any
    n: Any

    def __get_mlir_types__(self):
        return get_mlir_types(tuple(self.seen()))

    def __c_pointers__(self):
        x, n = self.seen()
        return [*get_c_pointers(x), n.value + 1]

    def seen(self):
        return self

    def __extract_mlir_values__(self):
        return cutlass.extract_mlir_values(tuple(self))

    def __new_from_mlir_values__(self, values):
        count = len(get_mlir_types(self.x))
        made = (cutlass.new_from_mlir_values(self.x, values[:count]), cutlass.Int32(values[count]))
        return Counted(*made)


class Seeing(Counted):
    """They see arrays, too."""

    def seen(self):
        return Counted(from_dlpack(self.x).mark_layout_dynamic() if type(self.x) is torch.Tensor else self.x, self.n)


@dataclass
class Two:
    first: Any
    rest: Any


@cute.jit
def launch_parts(x: cute.Tensor, parts, n):
    scale_kernel(x, parts[0], parts[1], n).launch(grid=1, block=32)


@cute.jit
def launch_record(x: cute.Tensor, parts, n):
    scale_kernel(x, parts.first, parts.rest[0], n).launch(grid=1, block=32)


@pytest.mark.parametrize(
    ("host", "make"),
    [
        (launch_parts, lambda y, f: (y, f)),
        (launch_parts, lambda y, f: [y, f]),
        (launch_parts, lambda y, f: Epilogue(y, f, 2)),
        (launch_record, lambda y, f: Two(y, (f,))),
    ],
)
@pytest.mark.parametrize("number", (float, cutlass.Float32))
def test_arrays_in_tuples_take_the_short_way(host: Any, make: Any, number: Any, machine: SimpleNamespace) -> None:
    x, count = torch.zeros(6, 4), cutlass.Int32(5)
    compiled = cute.compile(host, x, make(x, cutlass.Float32(1.0)), count)
    for k in range(4):
        y = torch.zeros(6, 4)
        compiled(x, make(y, number(k + 0.5)), count)
        _, values = (machine.short if k else machine.long)[-1]
        assert values[0] == x.data_ptr() and y.data_ptr() in values and values[-2:] == [k + 0.5, 5]
    assert len(machine.short) == 3
    for wrong in (make(y.double(), 1.0), make(y.t(), 1.0), make(y, "1"), (y,), (y, 1.0, 1.0), y):
        with pytest.raises(ArgumentError, match="argument 'parts"):
            compiled(x, wrong, count)
    compiled(x, make(y, number(1)), 3)
    assert len(machine.short) == 4 and machine.short[-1][1][-1] == 3


def test_named_tuple_arguments_are_passed_by_their_protocol(machine: SimpleNamespace) -> None:
    @cute.jit
    def host(x: cute.Tensor, counted, scalars):
        scale_kernel(x, counted.x, 1.0, counted.n + scalars.n).launch(grid=1, block=32)

    x, marked = torch.zeros(6, 4), from_dlpack(torch.zeros(6, 4)).mark_layout_dynamic()
    scalars = Counted(cutlass.Int32(1), cutlass.Int32(7))
    compiled = cute.compile(host, x, Counted(marked, cutlass.Int32(1)), scalars)
    for k in range(3):
        compiled(x, Counted(marked, cutlass.Int32(k)), scalars)
        assert machine.long[-1][1][-1] == k + 1 + 8, "its methods see a tensor and two numbers"
    for k in range(3):
        compiled(x, Counted(x, k), Counted(cutlass.Int32(1), cutlass.Int32(k)))
        assert (machine.short or machine.long)[-1][1][-1] == k + k + 1, "they do not see an array"
    assert len(machine.short) == 2
    for k in range(3):
        compiled = compiled if k else cute.compile(host, x, Seeing(marked, cutlass.Int32(1)), scalars)
        compiled(x, Seeing(x, cutlass.Int32(k)), scalars)
        assert machine.long[-1][1][-1] == k + 1 + 8


def test_a_number_of_another_type_is_another_specialisation(machine: SimpleNamespace) -> None:
    """Plain and typed numbers of one value are told apart, also where the arrays were seen before."""

    @cute.jit
    def host(x: cute.Tensor, n):
        scale_kernel(x, x, 1.0, cutlass.Int32(n * 65536 // 65536)).launch(grid=1, block=32)

    x, wide = torch.zeros(6, 4), 1 << 20
    for n in (cutlass.Int64(wide), cutlass.Int64(wide), cutlass.Int64(3), wide, 3, cutlass.Int64(wide)):
        host(x, n)
    assert [values[-1] for _, values in machine.short] == [3], "the third call: as the second, with another number"
    assert [values[-1] for _, values in machine.long] == [wide, wide, 0, 3, wide], "32 bits wrap"


WRONG = {
    "dtype": lambda x: x.double(),
    "rank": lambda x: x[0],
    "stride": lambda x: x.t(),
    "kind": lambda x: x.numpy().astype(np.int8),
    "number": lambda x: 5,
    "negative": torch._neg_view,
    "meta": lambda x: x.to("meta"),
    "fake": lambda x: FakeTensorMode().from_tensor(x),
    "zeros without memory": lambda x: torch._efficientzerotensor(x.shape),
    "nested": lambda x: torch.nested.nested_tensor([x]),  # which ended the process
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("marked", (False, True))
def test_wrong_arrays_are_refused_after_right_ones(machine: SimpleNamespace, name: str, marked: bool) -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    given = [from_dlpack(t).mark_layout_dynamic() for t in (x, y)] if marked else [x, y]
    compiled = cute.compile(scale, *given, 1.0, 0)
    for _ in range(3):
        compiled(*given, 1.0, 0)
    assert machine.short
    for _ in range(2):
        with pytest.raises(ArgumentError, match="argument 'y'"):
            compiled(given[0], WRONG[name](y), 1.0, 0)
        with pytest.raises(ArgumentError, match="argument 'factor'"):
            compiled(*given, "1.0", 0)
    count = len(machine.short)
    compiled(*given, 1.0, 0)
    assert len(machine.short) == count + 1


def test_tensors_changed_in_place_are_seen(machine: SimpleNamespace) -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    compiled = cute.compile(scale, x, y, 1.0, 0)
    for _ in range(2):
        compiled(x, y, 1.0, 0)
    x.resize_(3, 4)
    compiled(x, y, 1.0, 0)
    compiled(x, y, 1.0, 0)
    assert machine.long[-1][1][-1] == machine.short[-1][1][-1] == 3
    x.t_()
    with pytest.raises(ArgumentError, match="argument 'x'"):
        compiled(x, y, 1.0, 0)


def turned(x: torch.Tensor) -> None:
    x.data = x.data.t()


def of_integers(x: torch.Tensor) -> None:
    x.data = x.data.view(torch.int32)


CHANGES = {
    "t_": lambda x: x.t_(),
    "resize_": lambda x: x.resize_(4, 6),
    "as_strided_": lambda x: x.as_strided_((6, 2), (4, 2)),
    "data of other strides": turned,
    "data of another type": of_integers,
    "set_": lambda x: x.set_(torch.zeros(12, 8)[::2, ::2]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("guarded", [True, False])
def test_a_changed_tensor_is_no_longer_like_itself(
    change: str, guarded: bool, machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tensor object and its address stay; what it was compiled for does not hold any more."""
    if not guarded:  # a PyTorch without the test that its compiler uses
        monkeypatch.setattr(arrays, "_guards", lambda: None)
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    compiled = cute.compile(scale, from_dlpack(x), from_dlpack(y), 1.0, 0)
    for _ in range(3):
        compiled(x, y, 1.0, 0)
    count = len(machine.short)
    assert count == 2
    CHANGES[change](x)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="argument 'x'"):
            compiled(x, y, 1.0, 0)
    compiled(y, y, 1.0, 0)
    assert len(machine.short) == count + 1


def test_looks_like_compares_shape_stride_and_type() -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    alike = arrays.looks_like([x, y])
    assert alike(x, y) and alike(y, x) and alike(torch.ones(6, 4), x)
    others = [torch.zeros(4, 6), torch.zeros(4, 6).t(), torch.zeros(6, 4, dtype=torch.float64), x.numpy(), 3, x[0]]
    assert not any(alike(x, other) or alike(other, x) for other in others)
    assert not arrays.looks_like([x.numpy()])(x.numpy()), "PyTorch knows its own tensors only"
    assert not arrays.looks_like([x, x])(x, y), "one tensor twice"


def test_alignment_is_checked_at_every_call(machine: SimpleNamespace) -> None:
    memory = torch.zeros(64 + 8)
    start = -(memory.data_ptr() // 4) % 4
    x, off = memory[start : start + 24].view(6, 4), memory[start + 1 : start + 25].view(6, 4)
    marked = from_dlpack(x, assumed_align=16).mark_layout_dynamic()
    compiled = cute.compile(scale, marked, marked, 1.0, 0)
    for _ in range(3):
        compiled(x, x, 1.0, 0)
    assert machine.short
    for _ in range(2):
        with pytest.raises(ArgumentError, match="argument 'y': expected an address that is a multiple of 16 bytes"):
            compiled(x, off, 1.0, 0)


def test_divisors_are_checked_at_every_call(machine: SimpleNamespace) -> None:
    @cute.jit
    def host(x: cute.Tensor):
        scale_kernel(x, x, 1.0, x.shape[0]).launch(grid=1, block=32)

    def array(n: int) -> torch.Tensor:
        return torch.zeros(n, 4)

    compiled = cute.compile(host, from_dlpack(array(16)).mark_compact_shape_dynamic(0, divisibility=8))
    for n in (16, 24, 16, 24):
        compiled(array(n))
        compiled(from_dlpack(array(n)).mark_compact_shape_dynamic(0, divisibility=8))
    assert len(machine.short) == 2, "marked tensors are new each time"
    for _ in range(2):
        with pytest.raises(ArgumentError, match="argument 'x': .*not a multiple of 8"):
            compiled(array(20))
        with pytest.raises(ArgumentError, match="argument 'x': .*not a multiple of 8"):
            compiled(from_dlpack(array(20)).mark_compact_shape_dynamic(0, divisibility=4))


def test_host_tensors_alternate(machine: SimpleNamespace) -> None:
    first, second = (from_dlpack(torch.zeros(n, 4)).mark_layout_dynamic() for n in (5, 6))
    compiled = cute.compile(scale, first, first, 1.0, 0)
    for x in (first, second, first, second):
        compiled(x, x, 1.0, 0)
        config, values = max(machine.short[-1:] + machine.long[-1:], key=lambda call: call[1][-1] == x.array.shape[0])
        assert values[0] == x.data_ptr and values[-1] == x.array.shape[0]
    first.element_type = cutlass.Int32
    with pytest.raises(ArgumentError, match="argument 'x'.*i32"):
        compiled(first, second, 1.0, 0)


def test_host_code_that_moves_pointers(machine: SimpleNamespace) -> None:
    @cute.kernel
    def fill(x: cute.Tensor):
        x[0] = 1.0

    @cute.jit
    def host(x: cute.Tensor):
        fill(cute.make_tensor(x.iterator + x.shape[0] // 2, cute.make_layout(4))).launch(grid=1, block=1)

    x = torch.zeros(40)
    compiled = cute.compile(host, x)
    compiled(x)
    compiled(x)
    assert machine.short[-1][1] == machine.long[-1][1] == [x.data_ptr() + 80]


def test_host_code_that_touches_memory_takes_the_long_way() -> None:
    @cute.jit
    def host(x: cute.Tensor):
        x[0] = x[1] + 1.0

    x = torch.zeros(4)
    compiled = cute.compile(host, x)
    compiled(x)
    x[1] = 5.0
    compiled(x)
    assert x[0] == 6.0


def test_threads(machine: SimpleNamespace) -> None:
    tensors = [torch.zeros(n, 4) for n in range(2, 8)]
    compiled = cute.compile(scale, tensors[0], tensors[0], 1.0, 0)
    problems: list[Exception] = []

    def work(x: torch.Tensor) -> None:
        try:
            for _ in range(100):
                compiled(x, x, 1.0, x.shape[0])
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(x,)) for x in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(machine.short) + len(machine.long) == 600
    rows = {x.data_ptr(): x.shape[0] for x in tensors}
    for config, values in machine.short + machine.long:
        assert rows[values[0]] == values[-1] == config.stream


def test_remembered_calls_are_bounded(machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.lang.launch import calls

    monkeypatch.setattr(calls, "REMEMBERED", 4)
    compiled = cute.compile(scale, torch.zeros(2, 4), torch.zeros(2, 4), 1.0, 0)
    for n in range(1, 30):
        for _ in range(2):
            compiled(torch.zeros(n, 4), torch.zeros(n, 4), 1.0, 0)
    assert len(machine.short) == len(machine.long) == 29


def test_a_launch_that_fails_is_not_tried_again() -> None:
    """The short way recognises arrays first; an error of the launch itself must not send it the long way."""

    @cute.kernel
    def fails_at_first(count: cute.Tensor):
        count[0] += 1
        if count[0] % 2 == 1:
            (count.iterator + 1000).store(count[0])

    @cute.jit
    def host(count: cute.Tensor) -> None:
        fails_at_first(count).launch(grid=(1, 1, 1), block=(1, 1, 1))

    for align in (4, 8, 16):  # tensors of other kinds than those of the call before
        count = np.zeros(4, np.int32)
        with pytest.raises(SimulationError, match="out of bounds"):
            host(from_dlpack(count, assumed_align=align))
        assert count[0] == 1
    for _ in range(2):
        count = np.zeros(4, np.int32)
        with pytest.raises(SimulationError, match="out of bounds"):
            host(from_dlpack(count, assumed_align=16))
        assert count[0] == 1
