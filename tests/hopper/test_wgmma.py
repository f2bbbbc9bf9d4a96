"""wgmma on both machines against NumPy, for integer-valued inputs exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.hopper.warpgroup_programs import OneGemm, Streamed, TwoGemms, WithEpilogue
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import cute, sim
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


def one(
    machine: str,
    name: str,
    kinds: tuple[str, str] = ("SW128", "SW128"),
    warpgroups: int = 1,
    add: bool = False,
    whole: bool = False,
) -> None:
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


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("form", ["SS<MN,K>", "RS<K,MN>"])
def test_warps_that_come_one_by_one(form: str, seed: int) -> None:
    """Under a seeded schedule the warps of a warpgroup part: each multiplies its own sixteen rows."""
    with sim.options(seed=seed):
        one("cpu", f"SM90_64x32x16_F32F16F16_{form}", ("SW64", "SW64"), warpgroups=2, add=True, whole=seed == 1)


TYPES = [
    "64x40x16_F16F16F16",
    "64x16x16_F32BF16BF16",
    "64x128x8_F32TF32TF32",
    "64x32x32_F32E4M3E4M3",
    "64x64x32_F32E5M2E4M3",
    "64x8x32_F16E4M3E5M2",
    "64x24x32_S32S8S8",
    "64x64x32_S32U8U8",
    "64x48x32_S32S8U8",
    "64x16x32_S32U8S8",
]


FROM_SHARED = TYPES[:5] + TYPES[6:7] + TYPES[9:]
"""A of every type: its descriptor does not depend on the types of B and D."""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("types", "source"), [(t, "RS") for t in TYPES] + [(t, "SS") for t in FROM_SHARED])
def test_the_types(machine: str, types: str, source: str) -> None:
    form = "_TN" if types.split("_")[1] not in ("F16F16F16", "F32BF16BF16") else "<K,MN>"
    kind = "SW32" if "x16_" in types or "x8_" in types else "SW128"
    n = int(types.split("x")[1])
    b_kind = kind if form == "_TN" else {40: "INTER", 16: "SW32"}[n]
    one(machine, f"SM90_{types}_{source}{form}", (kind, b_kind), warpgroups=1 + (source == "RS"), add=True)


@pytest.mark.parametrize("machine", MACHINES)
def test_registers_of_several_k_blocks(machine: str) -> None:
    one(machine, "SM90_64x32x16_F32F16F16_RS<K,MN>", ("SW64", "SW64"), warpgroups=2, whole=True)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_an_epilogue_through_shared_memory(machine: str, order: str, dtype: str) -> None:
    m, n, k = 128, 128, 64
    a, b = integers((m, k), "f16"), integers((n, k), "f16")
    c = np.zeros((m, n), NUMPY[dtype], order="C" if order == "row" else "F")
    check(machine, WithEpilogue(order), a, b, c, False)


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


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("SM90_64x64x16_F32F16F16_SS<MN,MN>", "m64n64k16.f32.f16.f16"),
        ("SM90_64x64x16_F32F16F16_RS<K,K>", "m64n64k16.f32.f16.f16"),
        ("SM90_64x128x16_F16F16F16_SS<K,MN>", "m64n128k16.f16.f16.f16"),
        ("SM90_64x64x8_F32TF32TF32_RS_TN", "m64n64k8.f32.tf32.tf32"),
        ("SM90_64x64x32_F32E4M3E5M2_SS_TN", "m64n64k32.f32.e4m3.e5m2"),
        ("SM90_64x64x32_F16E4M3E4M3_RS_TN", "m64n64k32.f16.e4m3.e4m3"),
        ("SM90_64x64x32_S32S8U8_RS_TN", "m64n64k32.s32.s8.u8"),
        ("SM90_64x32x32_S32U8U8_SS_TN", "m64n32k32.s32.u8.u8"),
    ],
)
def test_every_kind_compiles_without_copies(name: str, instruction: str) -> None:
    atom = mma_by_name(name)
    m, n, k = atom.shape_mnk
    types = [NUMPY[t.name] for t in (atom.type_a, atom.type_b, atom.type_d)]
    arrays = [np.zeros(shape, t) for shape, t in zip(((m, 4 * k), (n, 4 * k), (m, n)), types, strict=True)]
    made = artifact(OneGemm(atom), *arrays)
    assert made.ptx.count(f"wgmma.mma_async.sync.aligned.{instruction}") == 4
    assert not made.warnings and made.spills == 0 and made.stack == 0


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("overlap", [False, True])
def test_accumulators_as_the_next_operand(machine: str, overlap: bool) -> None:
    q, k, v = (RNG.integers(-2, 3, (rows, 64)).astype(np.float16) for rows in (64, 192, 192))
    arrays = Arrays(machine, q, k, v, np.zeros((64, 64), np.float32))
    TwoGemms(64, overlap)(*arrays.tensors())
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    np.testing.assert_array_equal(arrays.back(3), q @ k.T @ v)


@pytest.mark.parametrize("overlap", [False, True])
def test_two_accumulators_in_flight_do_not_serialise(overlap: bool) -> None:
    shapes = ((64, 128), (256, 128), (256, 128))
    made = artifact(TwoGemms(128, overlap), *[np.zeros(s, "f2") for s in shapes], np.zeros((64, 128), "f4"))
    assert not made.warnings and made.spills == 0 and made.stack == 0
    assert made.ptx.count("wgmma.mma_async.sync.aligned.m64") == 2 * 8 + 4
