"""Matrix instructions against NumPy, element by element, with integer-valued inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.atoms.fake import FakeLanes, emit, mma_call
from tests.counting import calls_in
from tilewright.atoms.fma import FMA, UniversalFma
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync import MmaSync
from tilewright.atoms.mma_sync_table import MMA_SYNC, check_known
from tilewright.atoms.tables import lanes_of
from tilewright.atoms.value_types import B1, C64
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.target import architecture
from tilewright.ir.types import BF16, E4M3, F16, F32, F64, I32, TF32, FragType, ScalarType
from tilewright.layout import Layout, size

RNG = np.random.default_rng(5)
GAUSS = "SM80_8x8x4_GC64C64C64GC64_TN"
WARP_ATOMS = sorted(MMA_SYNC.keys() - {GAUSS})  # whose accumulators hold three numbers: a test of its own


def draw(type_: ScalarType, shape: Any) -> np.ndarray[Any, Any]:
    """Small integers of the type (fp8 e5m2 holds the integers up to 8)."""
    low, high = (-4, 5) if type_.kind in ("float", "int") else (0, 8)
    if type_ == B1:
        low, high = 0, 2
    if type_.kind == "complex":
        return RNG.integers(-4, 5, shape) + 1j * RNG.integers(-4, 5, shape)
    return RNG.integers(low, high, shape)


def scatter(
    matrix: np.ndarray[Any, Any], tv: Layout, registers: Layout, thr_id: Layout, type_: ScalarType, count: int
) -> Any:
    """Fragments ``[32, count]`` of matrices ``[groups, rows, columns]``, by evaluating the layouts one by one."""
    fragment = np.zeros((32, count), dtype=type_.dtype)
    lanes = lanes_of(thr_id)
    rows_atom = matrix.shape[1] // size(registers[1])
    columns_atom = matrix.shape[2] // size(registers[2])
    for group in range(len(lanes)):
        for t in range(size(tv[0])):
            for v in range(size(tv[1])):
                i, j = tv(t, v) % rows_atom, tv(t, v) // rows_atom
                for r in range(size(registers[1])):
                    for c in range(size(registers[2])):
                        fragment[lanes[group, t], registers(v, r, c)] = matrix[
                            group, r * rows_atom + i, c * columns_atom + j
                        ]
    return fragment


def reference(a: Any, b: Any, c: Any, bit_op: str) -> Any:
    if bit_op == "xor":
        return c + (a[:, :, None, :] != b[:, None, :, :]).sum(axis=-1)
    return c + a @ b.transpose(0, 2, 1)


def run_case(atom: Mma, m: int, n: int, k: int) -> None:
    op = mma_call(atom, m, n, k)
    atom.verify(op)
    groups = len(lanes_of(atom.thr_id))
    am, an, ak = atom.shape_mnk
    warps = 2
    fragments = [[], [], []]
    wanted = []
    for _ in range(warps):
        a = draw(atom.type_a, (groups, am * m, ak * k))
        b = draw(atom.type_b, (groups, an * n, ak * k))
        c = draw(atom.type_d, (groups, am * m, an * n))
        wanted.append((reference(a, b, c, getattr(atom, "bit_op", "")), c))
        sides = (
            ("d", c, atom.layout_c, atom.type_d),
            ("a", a, atom.layout_a, atom.type_a),
            ("b", b, atom.layout_b, atom.type_b),
        )
        for i, (x, matrix, tv, type_) in enumerate(sides):
            fragments[i].append(scatter(matrix, tv, op.attrs[f"{x}_layout"], atom.thr_id, type_, op.operands[i].type.n))
    d, a, b = (np.concatenate(x) for x in fragments)
    expected = np.concatenate(
        [scatter(w, atom.layout_c, op.attrs["d_layout"], atom.thr_id, atom.type_d, d.shape[1]) for w, _ in wanted]
    )
    # Only lanes of warp 0 in the second run: warp 1 must keep its accumulators.
    before = d.copy()
    atom.simulate(FakeLanes(warps), op, [d, a, b])
    np.testing.assert_array_equal(d, expected)
    mask = np.arange(32 * warps) < 32
    partly = before.copy()
    atom.simulate(FakeLanes(warps, mask), op, [partly, a, b])
    np.testing.assert_array_equal(partly[:32], expected[:32])
    np.testing.assert_array_equal(partly[32:], before[32:])


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_every_mma_sync(name: str) -> None:
    run_case(MMA_SYNC[name], 1, 1, 1)


def test_complex_numbers_by_three_products() -> None:
    """(t0 - t1, t2 - t0 - t1) is the complex sum, also over rest modes and where accumulators hold something."""
    atom = MMA_SYNC[GAUSS]
    op = mma_call(atom, 2, 1, 3)
    atom.verify(op)
    a, b, c = (draw(C64, shape) for shape in ((1, 16, 12), (1, 8, 12), (1, 16, 8)))
    held = np.zeros(c.shape, atom.type_d.dtype)
    held["f0"], held["f2"] = c.real, c.real + c.imag
    sides = (("d", held, atom.layout_c, atom.type_d), ("a", a, atom.layout_a, C64), ("b", b, atom.layout_b, C64))
    d, left, right = (
        scatter(x, tv, op.attrs[f"{name}_layout"], atom.thr_id, type_, op.operands[i].type.n)
        for i, (name, x, tv, type_) in enumerate(sides)
    )
    before = d.copy()
    atom.simulate(FakeLanes(1), op, [d, left, right])
    wanted = scatter(
        reference(a, b, c, ""), atom.layout_c, op.attrs["d_layout"], atom.thr_id, C64, op.operands[0].type.n
    )
    np.testing.assert_array_equal(d["f0"] - d["f1"] + 1j * (d["f2"] - d["f0"] - d["f1"]), wanted)
    idle = before.copy()
    atom.simulate(FakeLanes(1, np.zeros(32, bool)), op, [idle, left, right])
    np.testing.assert_array_equal(idle, before)


@pytest.mark.parametrize(
    "name", ["SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x32_S32S8S8S32_TN", "SM70_8x8x4_F32F16F16F32_NT"]
)
def test_rest_modes(name: str) -> None:
    run_case(MMA_SYNC[name], 2, 3, 2)


@pytest.mark.parametrize("name", sorted(FMA))
def test_thread_instructions(name: str) -> None:
    run_case(FMA[name], 3, 2, 2)


def test_mma_registers_in_any_layout() -> None:
    atom = MMA_SYNC["SM80_16x8x8_F32TF32TF32F32_TN"]
    d = Layout(((2, 2), 2, 1), ((4, 16), 1, 0))
    op = mma_call(atom, 2, 1, 1, d=d)
    a = draw(TF32, (1, 32, 8)).astype(np.float32)
    b = draw(TF32, (1, 8, 8)).astype(np.float32)
    fragments = [
        np.zeros((32, op.operands[0].type.n), np.float32),
        scatter(a, atom.layout_a, op.attrs["a_layout"], atom.thr_id, TF32, op.operands[1].type.n),
        scatter(b, atom.layout_b, op.attrs["b_layout"], atom.thr_id, TF32, op.operands[2].type.n),
    ]
    atom.simulate(FakeLanes(1), op, fragments)
    np.testing.assert_array_equal(
        fragments[0], scatter(a @ b.transpose(0, 2, 1), atom.layout_c, d, atom.thr_id, F32, fragments[0].shape[1])
    )


def test_tf32_drops_low_bits() -> None:
    atom = MMA_SYNC["SM80_16x8x4_F32TF32TF32F32_TN"]
    op = mma_call(atom, 1, 1, 1)
    d, a, b = (np.zeros((32, v.type.n), np.float32) for v in op.operands)
    a[:] = 1 + 2.0**-10 + 2.0**-20
    b[:] = 1
    atom.simulate(FakeLanes(1), op, [d, a, b])
    np.testing.assert_array_equal(d, np.float32(4 * (1 + 2.0**-10)))


def test_half_accumulators_round_after_each_step() -> None:
    atom = MMA_SYNC["SM80_16x8x8_F16F16F16F16_TN"]
    op = mma_call(atom, 1, 1, 2)
    d, a, b = (np.zeros((32, v.type.n), np.float16) for v in op.operands)
    a[:], b[:], d[:] = 0.25, 0.5, 2048
    atom.simulate(FakeLanes(1), op, [d, a, b])
    np.testing.assert_array_equal(d, np.float16(2048))


def test_saturation() -> None:
    atom = MMA_SYNC["SM80_16x8x32_S32S8S8S32_TN_SATURATE"]
    wrapping = MMA_SYNC["SM80_16x8x32_S32S8S8S32_TN"]
    for which, expected in ((atom, 2**31 - 1), (wrapping, -(2**31) + 99)):
        op = mma_call(which, 1, 1, 1)
        a, b = (np.ones((32, v.type.n), np.int8) for v in op.operands[1:])
        d = np.full((32, op.operands[0].type.n), 2**31 - 1, np.int32)
        a[:], b[:] = 1, 0
        b[:, 0] = 25  # one value of every thread: 4 threads share a column
        which.simulate(FakeLanes(1), op, [d, a, b])
        np.testing.assert_array_equal(d, expected)


def test_a_part_of_a_warp_is_an_error() -> None:
    atom = MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"]
    op = mma_call(atom, 1, 1, 1)
    values = [np.zeros((32, v.type.n), v.type.elem.dtype) for v in op.operands]
    with pytest.raises(SimulationError, match="all 32 lanes"):
        atom.simulate(FakeLanes(1, np.arange(32) < 16), op, values)


def test_operands_are_checked() -> None:
    atom = MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"]
    good = mma_call(atom, 2, 2, 1)
    atom.verify(good)
    bad = mma_call(atom, 2, 2, 1)
    bad.operands[1].type = FragType(BF16, 16)
    with pytest.raises(ConstraintError, match="A must hold f16, not bf16"):
        atom.verify(bad)
    bad = mma_call(atom, 2, 2, 1, b=Layout(((2, 2), 3, 1)))
    with pytest.raises(ConstraintError, match="do not match"):
        atom.verify(bad)
    bad = mma_call(atom, 1, 1, 1, a=Layout(((2, 2, 2), 1, 1), ((4, 1, 2), 0, 0)))
    with pytest.raises(ConstraintError, match="holds 2 f16 side by side.*V0..V1 are the elements .0, 4"):
        atom.verify(bad)
    bad = mma_call(atom, 1, 1, 1, a=Layout(((2, 2), 1, 1)))
    with pytest.raises(ConstraintError, match="holds 8 values of one A"):
        atom.verify(bad)


def test_unknown_shape_lists_the_known() -> None:
    with pytest.raises(ConstraintError, match="16x8x8 with f32 accumulators"):
        check_known(MmaSync(80, (16, 8, 32), F32, BF16, BF16))
    assert check_known(MmaSync(89, (16, 8, 32), F32, E4M3, E4M3)).type_d == F32


def test_universal_fma_takes_all_lanes_at_once_and_is_exact() -> None:
    atom = UniversalFma(F32)
    op = mma_call(atom, 8, 8, 1)
    d, a, b = np.zeros((1024, 64), np.float32), draw(F32, (1024, 8)).astype("f4"), draw(F32, (1024, 8)).astype("f4")
    lanes = FakeLanes(32)
    atom.simulate(lanes, op, [d, a, b])
    np.testing.assert_array_equal(d.reshape(1024, 8, 8), b[:, :, None] * a[:, None, :])
    assert calls_in(lambda: atom.simulate(lanes, op, [d, a, b])) < 100, "a loop over lanes"


def test_text_of_a_gemm() -> None:
    out = emit(mma_call(MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"], 2, 4, 2), ["acc", "a", "b"])
    text = "\n".join(out.lines)
    assert "for (int k = 0; k < 2; ++k)" in text and "m & 1 ? 3 - n : n" in text
    (source,) = out.helpers.values()
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}" in source


def test_text_of_one_step_has_plain_numbers() -> None:
    out = emit(mma_call(MMA_SYNC["SM80_8x8x4_F64F64F64F64_TN"], 1, 1, 1), ["c", "a", "b"])
    assert out.lines == ["mma_8x8x4_f64f64f64f64_tn(c[0], c[1], a[0], b[0]);"]
    out = emit(mma_call(UniversalFma(F64), 1, 2, 1), ["c", "a", "b"])
    assert out.lines == ["c[0] = fma(a[0], b[0], c[0]);", "c[1] = fma(a[0], b[1], c[1]);"]


def test_every_text_names_its_registers() -> None:
    for name, atom in MMA_SYNC.items():
        if atom.bit_op == "xor":
            assert "ANDPOPC" in atom.lacking(architecture("sm_90a")) and not atom.lacking(architecture("sm_89"))
        out = emit(mma_call(atom, 1, 1, 1), ["d", "a", "b"])
        products = 3 if name == GAUSS else 4 if atom.type_a.kind == "complex" else 1
        assert len(out.lines) == products, name
        wanted = {F64: "f64", I32: "s32", F16: "f16", F32: "f32"}.get(atom.type_d, "f64")
        assert wanted in next(iter(out.helpers.values()))
