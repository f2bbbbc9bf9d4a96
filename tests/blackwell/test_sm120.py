"""``mma.sync`` with block scales (sm_120): products of a warp, exact on integers, and the CUDA text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.blackwell.test_scaled import E2M1, E3M2, E4M3, E5M2, E8M0, TYPES, packed
from tests.check.pairs import launch
from tilewright import cute, sim
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError

F32 = cutlass.Float32
OPS = {
    "mxf4": warp.MmaMXF4Op(E2M1, F32, E8M0),
    "nvf4": warp.MmaMXF4NVF4Op(E2M1, F32, E4M3),
    "mxf4 of 16": warp.MmaMXF4NVF4Op(E2M1, F32, E8M0),
    "mxf8": warp.MmaMXF8Op(E5M2, F32, E8M0),
    "mixed": warp.MmaMXF8F6F4Op(E3M2, E2M1, F32, E8M0),
}


def multiply(op: Any, given: str = "written") -> Any:
    """A kernel of four warps: y (32, 16) += x (32, K) * w (16, K) with factors (rows, K / vec), twice over K.
    ``given``: whether the factors are written, only set, or not even that."""
    made = op.instruction()
    m, n, k = made.shape_mnk

    @cute.kernel
    def kernel(x: cute.Tensor, w: cute.Tensor, sfx: cute.Tensor, sfw: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        types = [cute.recast_tensor(v, kind) for v, kind in ((x, stored(made, "A")), (w, stored(made, "B")))]
        mma = cute.make_tiled_mma(op, (2, 2, 1))
        mine = mma.get_slice(t)
        a, b, c = mine.partition_A(types[0]), mine.partition_B(types[1]), mine.partition_C(y)
        sums = mma.make_fragment_C(c)
        sums.fill(0.0)
        lane, warp_m, warp_n = t % 32, t // 32 % 2, t // 64
        row, column = warp_m * m + lane % 2 * 8 + lane // 4, warp_n * n + lane // 4
        ra, rb = mma.make_fragment_A(a), mma.make_fragment_B(b)
        cute.autovec_copy(a, ra)
        cute.autovec_copy(b, rb)
        for i in cutlass.range_constexpr(2):
            if cutlass.const_expr(given != "not set"):
                for field, factors, r in ((warp.Field.SFA, sfx, row), (warp.Field.SFB, sfw, column)):
                    part = cute.local_tile(factors[r, None], (made.factors,), (i,))
                    held = cute.make_rmem_tensor((made.factors,), op.sf_type)
                    if cutlass.const_expr(given == "written"):
                        cute.autovec_copy(part, held)
                    mma.set(field, held.iterator)
            cute.gemm(mma, sums, ra[None, None, i], rb[None, None, i], sums)
        cute.autovec_copy(sums, c)

    return kernel, (2 * m, 2 * n, 2 * k)


def stored(made: Any, role: str) -> Any:
    from tilewright.lang.numbers.numeric import class_of

    return class_of(made.stored_type(role))


def arrays(op: Any, shape: tuple[int, int, int]) -> tuple[list[Any], Any]:
    made, (m, n, k) = op.instruction(), shape
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (rows, k)).astype(np.float32) for rows in (m, n))
    sx, sw = (2.0 ** rng.integers(-2, 3, (rows, k // made.vec)) for rows in (m, n))
    if op.sf_type is E4M3:
        sx = sx * 1.5
    kinds = op._types()
    numbers = [
        values.astype(TYPES[kind]).view(np.uint8) << (2 if kind is E2M1 else 0)
        if stored(made, role) is cutlass.Uint8
        else packed(values, kind)
        for values, kind, role in ((x, kinds[0], "A"), (w, kinds[1], "B"))
    ]
    scales = [s.astype(TYPES[op.sf_type]) for s in (sx, sw)]
    wide = [v * np.repeat(s, made.vec, 1) for v, s in ((x, sx), (w, sw))]
    return [*numbers, *scales, np.zeros((m, n), np.float32)], (wide[0] @ wide[1].T).astype(np.float32)


@pytest.mark.parametrize("name", OPS)
def test_products_of_scaled_integers(name: str) -> None:
    kernel, shape = multiply(OPS[name])
    given, expected = arrays(OPS[name], shape)
    with sim.options(check="all", arch="sm_120a"):
        launch(kernel, *map(from_dlpack, given), block=128)
    np.testing.assert_array_equal(given[-1], expected)


@pytest.mark.parametrize(
    "name, arch", [("mxf4", "sm_120a"), ("nvf4", "sm_121a"), ("mxf8", "sm_120a"), ("mixed", "sm_120a")]
)
def test_the_text_is_assembled(name: str, arch: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    kernel, shape = multiply(OPS[name])

    @cute.jit
    def host(*tensors: cute.Tensor):
        kernel(*tensors).launch(grid=(1, 1, 1), block=(128, 1, 1))

    made = build(cute.compile(host, *map(from_dlpack, arrays(OPS[name], shape)[0])).kernels[0], arch)
    assert made.spills == 0 and not made.warnings
    kind = {"mxf4": "mxf4.", "nvf4": "mxf4nvf4."}.get(name, "mxf8f6f4.")
    assert f"mma.sync.aligned.kind::{kind}block_scale" in made.ptx


def test_what_there_is_not() -> None:
    kernel, shape = multiply(OPS["mxf4"], given="not set")
    given = [from_dlpack(x) for x in arrays(OPS["mxf4"], shape)[0]]
    with pytest.raises(ConstraintError, match=r"no scale factors: set\(warp.Field.SFA, registers.iterator\)"):
        launch(kernel, *given, block=128)
    with sim.options(arch="sm_100a"), pytest.raises(SimulationError, match="sm_120a or sm_121a"):
        launch(multiply(OPS["mxf4"])[0], *given, block=128)
    with pytest.raises(ConstraintError, match="factors of type e4m3 for 32 elements each; there are ue8m0 of 32"):
        warp.MmaMXF4Op(E2M1, F32, E4M3)
    with pytest.raises(ConstraintError, match="A is one of e4m3, e5m2, not e2m1"):
        warp.MmaMXF8Op(E2M1, F32, E8M0)
