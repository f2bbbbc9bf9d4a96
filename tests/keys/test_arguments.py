"""Each component of an argument's key: of a direct call's arguments, and of what a host function passes to a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
from tests.keys.spy import Path, Spy, check, components
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.lang.arguments import kinds, protocol
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.builder import HostBuilder

pytestmark = pytest.mark.unchecked


class Held:
    """A user's class with one run-time number, a static factor, and facts."""

    def __init__(self, number: Any, factor: int = 1, facts: Any = None) -> None:
        self.number, self.factor, self.facts = number, factor, facts

    def __c_pointers__(self) -> list[Any]:
        return [self.number]

    def __get_mlir_types__(self) -> list[Any]:
        return [cutlass.Int32.ir_type if isinstance(self.number, int) else cutlass.Float32.ir_type]

    def __extract_mlir_values__(self) -> list[Any]:
        return self.number.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Any]) -> Held:
        (value,) = values
        kind = next(c for c in (cutlass.Int32, cutlass.Float32) if c.ir_type == value.type)
        return type(self)(kind(value), self.factor)

    def __carry_key__(self) -> Any:
        return self.factor

    def value(self) -> Any:
        return self.number * self.factor


class Negated(Held):
    def value(self) -> Any:
        return -self.number * self.factor


class Plain:
    """A user's class that states no protocol: an object of it is part of the program."""

    def __init__(self, number: int) -> None:
        self.number = number


TWO, THREE = Plain(2), Plain(3)


class Flag(NamedTuple):
    """A named tuple with a field that is part of the program."""

    value: cutlass.Constexpr[int]


class Case(NamedTuple):
    """Two arguments that differ in the component ``path`` of their key, and the number that a function makes of one."""

    path: Path
    opened: set[Path]
    values: tuple[Any, Any]
    probe: Callable[[Any], Any]


def named(first: Any, second: Any, *path: int, probe: Any, opened: set[Path] | None = None) -> Case:
    return Case(path, {()} if opened is None else opened, (first, second), probe)


def extents(n: int, divisibility: int) -> Any:
    tensor = from_dlpack(np.arange(n, dtype=np.float32))
    return tensor.mark_compact_shape_dynamic(0, divisibility=divisibility)


def kind_of(value: Any) -> Any:
    return value * 0 + (1 if isinstance(value, cutlass.Int32) else 2)


DIRECT: dict[str, dict[str, Case]] = {
    "StaticArgument": {"value": named(Plain(2), Plain(3), opened=set(), probe=lambda a: cutlass.Int32(a.number))},
    "ScalarArgument": {"class": named(3, 3.0, opened=set(), probe=kind_of)},
    "CompoundArgument": {
        "type": named((1, 2), [1, 2], 0, probe=lambda a: a[0] + isinstance(a, tuple)),
        "labels": named({"p": 1, "q": 2}, {"p": 1, "r": 2}, 1, probe=lambda a: a["p"] + ("q" in a)),
        "parts": named((1, 2), (1.0, 2), 2, 0, opened={(), (2,)}, probe=lambda a: kind_of(a[0])),
        "last part": named((1, 2), (1, 2.0), 2, 1, opened={(), (2,)}, probe=lambda a: kind_of(a[1])),
        "Constexpr field": named(Flag(2), Flag(3), 2, 0, opened={(), (2,)}, probe=lambda a: cutlass.Int32(a.value)),
    },
    "ProtocolArgument": {
        "type": named(Held(3), Negated(3), 0, probe=lambda a: a.value()),
        "types": named(Held(3), Held(3.0), 1, probe=lambda a: kind_of(a.value())),
        "static part": named(Held(3, 2), Held(3, 5), 2, probe=lambda a: a.value()),
        "facts": named(extents(8, 4), extents(6, 2), 3, probe=lambda a: a.shape[0] % 4),
    },
}
"""By the class of the argument. (A stream's key has no component.)"""


def call_directly(probe: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    def run(spy: Spy, *values: Any) -> list[Any]:
        @cute.jit(preprocessor=False)
        def host(a: Any) -> Any:
            return probe(a)

        host.cache = spy
        return [host(value) for value in values]

    return run


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in DIRECT.items() for name in cases])
def test_key_of_direct_calls_has_each_component(kind: str, name: str) -> None:
    case = DIRECT[kind][name]
    check(call_directly(case.probe), *case.values, (0, *case.path), opened_in((0,), case.opened))


def opened_in(outer: Path, inner: set[Path]) -> set[Path]:
    return {outer[:i] for i in range(len(outer))} | {(*outer, *path) for path in inner}


STAGED: dict[str, dict[str, Case]] = {
    "NumberSpec": {
        "class": named(lambda n: n, lambda n: cutlass.Int64(n), 0, probe=lambda a: cutlass.Int32(a.width)),
        "facts": named(lambda n: n * 4, lambda n: n * 2, 1, probe=lambda a: a % 4),
    },
    "StaticSpec": {
        "value": named(lambda n: "two", lambda n: "three", opened=set(), probe=lambda a: cutlass.Int32(len(a)))
    },
    "KeptObjectSpec": {
        "object": named(lambda n: TWO, lambda n: THREE, opened=set(), probe=lambda a: cutlass.Int32(a.number)),
    },
    "CompoundSpec": {
        "type": named(lambda n: (n, n), lambda n: [n, n], 0, probe=lambda a: a[0] + isinstance(a, tuple)),
        "labels": named(lambda n: {"p": n, "q": n}, lambda n: {"p": n, "r": n}, 1, probe=lambda a: a["p"] + ("q" in a)),
        "parts": named(
            lambda n: (n, n),
            lambda n: (cutlass.Int64(n), n),
            2,
            0,
            opened={(), (2,)},
            probe=lambda a: cutlass.Int32(a[0].width),
        ),
        "last part": named(
            lambda n: (n, n),
            lambda n: (n, cutlass.Int64(n)),
            2,
            1,
            opened={(), (2,)},
            probe=lambda a: cutlass.Int32(a[1].width),
        ),
    },
    "ProtocolSpec": {
        "type": named(lambda n: Held(n), lambda n: Negated(n), 0, probe=lambda a: a.value()),
        "types": named(
            lambda n: Held(n), lambda n: Held(cutlass.Float32(n)), 1, probe=lambda a: cutlass.Int32(kind_of(a.value()))
        ),
        "static part": named(lambda n: Held(n, 2), lambda n: Held(n, 5), 2, probe=lambda a: a.value()),
        "facts": named(
            lambda n: cute.make_identity_tensor((n * 4,)),
            lambda n: cute.make_identity_tensor((n * 2,)),
            3,
            probe=lambda a: a.shape[0] % 4,
        ),
    },
}
"""By the class of the shape; each value is made of a run-time number of the host function."""


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in STAGED.items() for name in cases])
def test_key_of_kernels_has_each_component(kind: str, name: str) -> None:
    case = STAGED[kind][name]
    check(launch(case.probe), *case.values, (2, 2, *case.path), opened_in((2, 2), case.opened))


def launch(probe: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    @cute.kernel(preprocessor=False)
    def store(x: cute.Tensor, at: cutlass.Constexpr, value: Any):
        x[at] = probe(value)

    def run(spy: Spy, *makes: Callable[[Any], Any]) -> list[Any]:
        @cute.jit(preprocessor=False)
        def host(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
            HostBuilder.now().kernels = spy
            for array, make in zip((x, y), makes, strict=False):
                store(array, 0, make(n)).launch(grid=1, block=1)

        arrays = [np.zeros(1, np.int32) for _ in range(2)]
        cute.compile(host, *arrays, 3)(*arrays, 3)
        return [int(array[0]) for array, _ in zip(arrays, makes, strict=False)]

    return run


def defining(base: type, attribute: str, module: Any) -> set[str]:
    """The classes of a package's module that say what their key is."""
    found = {c.__name__ for c in vars(module).values() if isinstance(c, type) and issubclass(c, base)}
    return {name for name in found if attribute in vars(vars(module)[name]) and name != base.__name__}


def test_every_kind_has_its_cases() -> None:
    members = {**vars(kinds), **vars(protocol)}
    arguments = {n for n, c in members.items() if isinstance(c, type) and issubclass(c, kinds.Argument)}
    elsewhere = {"Argument", "OmittedArgument", "StreamArgument", "ConstantField"}  # streams' keys are equal; a field's
    assert arguments - elsewhere == DIRECT.keys()  # key is part of its tuple's
    assert defining(run_time.Spec, "key", run_time) == STAGED.keys()


@pytest.mark.parametrize("cases", [DIRECT, STAGED], ids=["direct", "staged"])
def test_every_component_has_its_case(cases: dict[str, dict[str, Case]]) -> None:
    for kind, listed in cases.items():
        for case in listed.values():
            spy = Spy()
            (launch if cases is STAGED else call_directly)(case.probe)(spy, case.values[0])
            key = spy.asked[0]
            for at in (2, 2) if cases is STAGED else (0,):
                key = key[at]
            paths = {path[:1] for path, _ in components(key, case.opened)}
            assert paths == {case.path[:1] for case in listed.values()}, f"{kind}: {key}"
