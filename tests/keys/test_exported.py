"""Each component of what an exported function says of its arguments: it takes what the compiled one takes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, make_ptr
from tilewright.errors import ArgumentError
from tilewright.export.describe import argument_of, describe, parameter_of
from tilewright.ir.runtime import DevicePointer


@cute.kernel
def add(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32, p: cute.Pointer, pair):
    t = cute.arch.thread_idx()[0]
    x[t, 0] = y[0, t] + n + pair[0] + pair[1] + p[0]


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32, p: cute.Pointer, pair, threads: cutlass.Int32 = 4):
    add(x, y, n, p, pair).launch(grid=(1, 1, 1), block=(threads, 1, 1))


MEMORY = np.zeros(4096 + 32, np.float32)
MEMORY = MEMORY[-MEMORY.ctypes.data % 128 // 4 :]


def array(shape: tuple[int, ...], *strides: int, first: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(MEMORY[first:].view(dtype), shape, [4 * step for step in strides])


def pointer(address: int = 0x1000, dtype: Any = cutlass.Float32, align: int = 16, space: str = "gmem") -> Any:
    return make_ptr(dtype, address, getattr(cute.AddressSpace, space), assumed_align=align)


@pytest.fixture(scope="module")
def executor() -> Any:
    x, y = (
        from_dlpack(array((8, 4), 4, 1), assumed_align=16).mark_all_dynamic(1, 4, 4),
        from_dlpack(array((4, 8), 8, 1)),
    )
    return cute.compile(run, x, y, 3, pointer(), (1, 2.5), 4)


CASES: dict[str, tuple[Any, Any]] = {
    "x.shape.1.facts.1": (array((8, 6), 8, 1), 2),
    "x.stride.0.facts.0": (array((8, 4), -4, 1, first=64), False),
    "x.stride.0.facts.1": (array((8, 4), 6, 1), 2),
    "x.stride.1": (array((8, 4), 8, 2), 2),
    "x.type": (array((8, 4), 4, 1, dtype=np.int32), "Int32"),
    "x.align": (array((8, 4), 4, 1, first=1), 4),
    "x.wide": (array((8, 4), 1 << 29, 1), True),
    "y.shape.0": (array((5, 8), 8, 1), 5),
    "y.shape.1": (array((4, 7), 8, 1), 7),
    "y.stride.0": (array((4, 8), 9, 1), 9),
    "y.stride.1": (array((4, 8), 8, 2), 2),
    "y.type": (array((4, 8), 8, 1, dtype=np.int32), "Int32"),
    "y.align": (array((4, 8), 8, 1, first=1), 16),
    "n.type": (1 << 40, "Int64"),
    "p.type": (pointer(dtype=cutlass.Int32), "Int32"),
    "p.align": (pointer(0x1004, align=4), 4),
    "p.space": (pointer(space="smem"), "smem"),
    "pair.labels.0": ({0: 1, 1: 2.5, "u": 3}, "['u']"),
    "pair.labels.1": ({0: 1, 1: 2.5, "u": 3}, "['u']"),
    "pair.parts.0.type": ((1 << 40, 2.5), "Int64"),
    "pair.parts.1.type": ((1, 2.5), "Int32"),
    "threads.type": (1 << 40, "Int64"),
}
"""By component: an argument, and another value of the component, with which it is taken otherwise."""

SAME = {
    "name": "for messages",
    "parameter": "for messages",
    "kind": "the class, with components of its own",
    "implicit": "arrays as they are, which are read alike",
    "pair.type": "for messages",
    "x.space": "arrays are in global memory",
    "y.space": "arrays are in global memory",
    "x.shape.0.facts.1": "1",
    "facts.0": "extents are never below 0",
    "width": "with offsets of 64 bits alone",
    "facts.2": "what the width says",
    "facts.3": "not of arguments",
    "facts.4": "not of arguments",
    "y.wide": "a static layout",
    "p.wide": "a static pointer",
}


def components(item: Any, path: str) -> Iterator[str]:
    if isinstance(item, (dict, list)):
        for key, part in item.items() if isinstance(item, dict) else enumerate(item):
            yield from components(part, f"{path}.{key}")
    else:
        yield path


def parameter(executor: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """The parameter as it was compiled, and its description."""
    described = describe(executor, "f", ["sm_90a"])["parameters"]
    place = [p["name"] for p in described].index(name)
    return executor.parameters[place].argument, described[place]


def outcome(argument: Any, value: Any) -> Any:
    try:
        return [x.address if isinstance(x, DevicePointer) else x for x in argument.read(value)]
    except ArgumentError:
        return "refused"


@pytest.mark.parametrize("path", CASES)
def test_exported_argument_check_has_each_component(path: str, executor: Any) -> None:
    value, other = CASES[path]
    name, *keys = path.split(".")
    compiled, item = parameter(executor, name)
    found = outcome(argument_of(item), value)
    if not path.startswith("pair.labels"):  # groups in C and of other classes go by their labels
        assert found == outcome(compiled, value)
    changed = copy.deepcopy(item)
    part: Any = changed
    for key in keys[:-1]:
        part = part[int(key) if isinstance(part, list) else key]
    part[int(keys[-1]) if isinstance(part, list) else keys[-1]] = other
    assert outcome(argument_of(changed), value) != found, "the component makes no difference"


def test_a_default_is_kept(executor: Any) -> None:
    _, item = parameter(executor, "threads")
    assert item["default"] == parameter_of(item).default == 4


def test_every_component_has_its_case(executor: Any) -> None:
    described = describe(executor, "f", ["sm_90a"])
    paths = [path for item in described["parameters"] for path in components(item, item["name"])]
    left = [
        path
        for path in paths
        if path not in CASES and path not in SAME and not any(path.endswith(f".{end}") for end in (*SAME, "default"))
    ]
    assert not left and CASES.keys() <= set(paths)
    # The rest: tests/export has other versions, devices that it was not exported for, read-only and unequal arguments.
    assert described.keys() == {"tilewright", "prefix", "architectures", "parameters", "program", "written", "equal"}
