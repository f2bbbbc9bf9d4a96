"""wgmma on both machines against NumPy, for integer-valued inputs exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.hopper.warpgroup_programs import OneGemm, Streamed
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import cute
from tilewright.atoms.names import mma_by_name

RNG = np.random.default_rng(9)
WHOLE = {"f16": 3, "bf16": 3, "tf32": 3, "e4m3": 3, "e5m2": 3, "i8": 100, "u8": 200}


def integers(shape: Any, kind: str) -> np.ndarray[Any, Any]:
    low = 0 if kind == "u8" else -WHOLE[kind]
    return RNG.integers(low, WHOLE[kind] + 1, shape).astype(NUMPY[kind])


def check(machine: str, program: Any, a: Any, b: Any, c: Any, add: bool) -> None:
    """Run ``program`` on a machine and compare with float64."""
    want = a.astype(np.float64) @ b.astype(np.float64).T + (c.astype(np.float64) if add else 0)
    arrays = Arrays(machine, a, b, c)
    program(*arrays.tensors())
    got = arrays.back(2)
    np.testing.assert_array_equal(got.astype(np.float64), want)


def one(machine: str, name: str, kinds: tuple[str, str] = ("SW128", "SW128"), warpgroups: int = 1, add: bool = False,
        whole: bool = False) -> None:  # fmt: skip
    atom = mma_by_name(name)
    m, n, k = atom.shape_mnk
    k *= 4
    a, b = integers((m * warpgroups, k), atom.type_a.name), integers((n, k), atom.type_b.name)
    c = RNG.integers(-3, 4, (m * warpgroups, n)).astype(NUMPY[atom.type_d.name])
    check(machine, OneGemm(atom, warpgroups, kinds, add, whole), a, b, c, add)


KINDS = ("INTER", "SW32", "SW64", "SW128")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("majors", ["K,K", "K,MN", "MN,K", "MN,MN"])
@pytest.mark.parametrize("kind", KINDS)
def test_majors_and_swizzles(machine: str, majors: str, kind: str) -> None:
    one(machine, f"SM90_64x64x16_F32F16F16_SS<{majors}>", (kind, kind), add=majors == "K,K", whole=kind == "SW64")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("n", [8, 24, 96, 256])
def test_the_extents_along_n(machine: str, n: int) -> None:
    one(machine, f"SM90_64x{n}x16_F32F16F16_SS<K,K>", warpgroups=2, add=n == 96)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("first", ["field", "zeros", "peeled"])
def test_a_ring_of_stages(machine: str, first: str) -> None:
    m, n, k = 128, 128, 320
    a, b = integers((m, k), "f16"), integers((n, k), "f16")
    check(machine, Streamed(64, 2, 3, first), a, b, np.zeros((m, n), np.float32), False)


def artifact(program: Any, *arrays: Any) -> Any:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    executor = cute.compile(program, *Arrays("cpu", *arrays).tensors())
    return build(executor.kernels[0], "sm_90a")


@pytest.mark.parametrize("first", ["field", "zeros", "peeled"])
def test_accumulators_stay_in_registers_while_groups_are_in_flight(first: str) -> None:
    """Two consumer warpgroups of 64x256 with a producer: 384 threads, of which each may have 168 registers."""
    a, b, c = (np.zeros(shape, t) for shape, t in (((128, 512), "f2"), ((256, 512), "f2"), ((128, 256), "f4")))
    made = artifact(Streamed(first=first), a, b, c)
    assert not made.warnings and made.spills == 0 and made.stack == 0
    assert made.registers <= 168
    count = made.mnemonics()
    steps = count["HGMMA.64"] // 4
    assert steps >= 1 and count["WARPGROUP.ARRIVE"] == steps
    assert count.get("R2UR", 0) <= 1 + 2 * steps
    waits = made.sass.count("gsb0")
    assert waits == steps + count["WARPGROUP.DEPBAR.LE"]  # only the last instruction of a group and the waits
