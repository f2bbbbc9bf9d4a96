"""Each component of the keys by which ``scaled_matmul`` repeats launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.keys.repeated import run
from tests.keys.spy import Path, Spy, check, components
from tilewright import sim
from tilewright.gemm import scaled_matmul

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

OPERANDS = ("a", "b", "out", "scale_a", "scale_b", "bias", "amax", "scale_result")
SHAPES = {
    "a": (32, 32),
    "b": (32, 64),
    "out": (32, 64),
    "scale_a": (32, 1),
    "scale_b": (1, 64),
    "bias": (64,),
    "amax": (1,),
    "scale_result": (1,),
}
ONE_NUMBER = ("amax", "scale_result")
OF_8_BITS = ("a", "b", "out")
OPERAND, HOW, SIMULATED = ("dtype", "shape", "stride", "alignment", "device", "negative"), 1, 2
ASKED = ("activation", "out_dtype", "use_fast_accum", "kernel", "saturate")
OPENED: set[Path] = {(), (0,), (HOW,), (SIMULATED,), *((0, i) for i in range(len(OPERANDS)))}
NAMES: dict[Path, str] = {
    **{(0, i, k): f"{name}: {part}" for i, name in enumerate(OPERANDS) for k, part in enumerate(OPERAND)},
    **{(HOW, i): name for i, name in enumerate(ASKED)},
    **{(SIMULATED, i): name for i, name in enumerate(("arch", "multiprocessors", "sizes"))},
    (3,): "operator",
}
"""All components of the key."""
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


@dataclass
class Call:
    """A product; ``lying`` says of which operand what is not as usual."""

    lying: dict[str, str] = field(default_factory=dict)
    how: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def operands(self) -> Iterator[tuple[str, Any]]:
        for i, name in enumerate(OPERANDS):
            (rows, columns), how = (1, *SHAPES[name])[-2:], self.lying.get(name, "")
            numbers = (torch.arange(2 * (rows + 2) * (columns + 2)) * (i + 3) % 11 - 5).float()
            usual = E4M3 if name in OF_8_BITS else torch.float32
            other = {"out": torch.bfloat16, "bias": torch.bfloat16}.get(name, E5M2 if usual is E4M3 else torch.float64)
            memory = numbers.to(other if how == "dtype" else usual)
            if how == "alignment":
                memory = memory[1:]
            steps = (1, rows) if name == "b" else (columns, 1)  # b's columns are contiguous
            if how == "stride":
                steps = tuple(2 * step for step in steps)
            more = name in ONE_NUMBER and how == "shape"  # two numbers, in place of none
            array = torch.as_strided(memory, (rows, columns + more), steps)
            if how == "shape" and not more:
                array = array[:-1] if rows > 1 else array[:, :-1]
            array = array[0] if len(SHAPES[name]) == 1 else array
            yield name, torch._neg_view(array) if how == "negative" else array

    def run(self) -> Any:
        given = dict(self.operands())
        with sim.options(**{"check": "none", "schedule": "lockstep", **self.options}):
            return scaled_matmul(**given, **self.how)


def pair(name: str, first: Any, second: Any, **more: Any) -> tuple[Call, Call]:
    return Call(how={name: first}, **more), Call(how={name: second}, **more)


CASES: dict[str, tuple[Call, Call]] = {
    **{
        f"{name}: {part}": (Call(), Call({name: part}))
        for name in OPERANDS
        for part in OPERAND
        if part != "device" and not (part == "negative" and name in OF_8_BITS)
    },
    "activation": pair("activation", None, "relu"),
    "out_dtype": pair("out_dtype", None, torch.bfloat16),
    "use_fast_accum": pair("use_fast_accum", False, True, options={"sizes": "gpu"}),
    "kernel": pair("kernel", "hopper_e4m3", "tensorop_e4m3"),
    "saturate": pair("saturate", True, False),
    "arch": (Call(options={"arch": "sm_90a", "sizes": "gpu"}), Call(options={"arch": "sm_89", "sizes": "gpu"})),
    "sizes": (Call(options={"sizes": "simulator"}), Call(options={"sizes": "gpu"})),
    "multiprocessors": (Call(options={"sms": 1}), Call(options={"sms": 132})),
}


HARMLESS = {f"{name}: alignment" for name in OPERANDS[3:]} | {f"{name}: stride" for name in ONE_NUMBER}
"""They are read element by element, and one number has no stride; the key has the components of every operand."""


@pytest.mark.parametrize("name", CASES)
def test_key_of_scaled_products_has_each_component(name: str) -> None:
    first, second = CASES[name]
    path = next(path for path, called in NAMES.items() if called == name)
    check(run, first, second, path, OPENED, needed=name not in HARMLESS)


def test_every_component_has_its_case() -> None:
    spy = Spy()
    run(spy, Call())
    assert [path for path, _ in components(spy.asked[0], OPENED)] == list(NAMES)
    missing = {f"{name}: device" for name in OPERANDS} | {f"{name}: negative" for name in OF_8_BITS} | {"operator"}
    assert NAMES.values() - CASES.keys() == missing, "these need two machines, or a type that PyTorch negates"
