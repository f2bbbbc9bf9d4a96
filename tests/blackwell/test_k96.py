"""``tcgen05.mma`` of e2m1 with K = 96 (sm_103a): rows that go on in another buffer, 3 or 6 factors of a row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tests.cuda.build import needs_nvrtc
from tilewright import cute, sim
from tilewright.atoms.tcgen05_described import DescribedMma
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.atoms.tcgen05_names import parse_tcgen05
from tilewright.cuda import emit
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims
from tilewright.ir.target import architecture
from tilewright.ir.types import E2M1, F32

M, K, STEPS, BUFFER = 128, 96, 4, 256
"""Each buffer has 256 numbers of a row, 128 bytes; four steps of 96 numbers go through one and a half of them."""


def swizzled(codes: Any) -> Any:
    """Rows of 128 bytes in the order of the 128-byte swizzle: 16 bytes of row r change places by r % 8."""
    rows = codes.reshape(len(codes), 8, 16)
    out = np.empty_like(rows)
    for row in range(len(rows)):
        for piece in range(8):
            out[row, piece ^ row % 8] = rows[row, piece]
    return out.reshape(-1)


def operand(rng: Any, rows: int, k: int) -> tuple[Any, Any]:
    """Numbers, and the bytes of their buffers."""
    x = rng.integers(-2, 3, (rows, k))
    codes = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    return x, np.concatenate([swizzled(packed[:, 128 * i : 128 * (i + 1)]) for i in range(2)])


def factor_words(factors: Any) -> Any:
    """``[32, columns]``: factor f of row r is byte f % 4 of column r / 32, behind those of all rows' factors before."""
    rows, count = factors.shape
    words = np.zeros((32, count // 4 * (rows // 32)), np.uint32)
    for row in range(rows):
        for f in range(count):
            column = f // 4 * (rows // 32) + row // 32
            words[row % 32, column] |= int(factors[row, f]) << 8 * (f % 4)
    return words


def multiply(n: int, vec: int, names_next: bool = True, size: Any = None, idesc_k: int = 96) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(vec)
    k, per = K * STEPS, K // vec
    x, a_bytes = operand(rng, M, 2 * BUFFER)
    w, b_bytes = operand(rng, n, 2 * BUFFER)
    padded = -(-n // 128) * 128
    exponents = [rng.integers(126, 129, (rows, 2 * BUFFER // vec)) for rows in (M, padded)]
    words = [factor_words(e) for e in exponents]
    given = np.concatenate(words, 1)
    columns, of_b = given.shape[1], words[0].shape[1]
    steps = [max(1, M // 32), padded // 32]

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, f: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(512, cutlass.Float32)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        s_a, s_b = (
            cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Uint8, cute.make_layout(cute.size(z)), 1024)
            for z in (a, b)
        )
        for i in range(t, cute.size(a), 128):
            s_a[i] = a[i]
        for i in range(t, cute.size(b), 128):
            s_b[i] = b[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        lanes = base.toint() + (warp << 21)
        for i in cutlass.range_constexpr(columns):
            word = cutlass.Vector.from_elements((f[t % 32, i],), cutlass.Uint32)
            prims.tcgen05_st("32x32b", prims.make_tmem_ptr(lanes + 256 + i, cutlass.Uint32), word)
        prims.tcgen05_wait("store")
        prims.tcgen05_fence("before_thread_sync")
        cute.arch.sync_threads()
        prims.tcgen05_fence("after_thread_sync")
        if warp == 0:
            for step in cutlass.range_constexpr(STEPS):
                first, factor = step * K // 32, step * per  # in pieces of 16 bytes, in factors
                place = {}
                for which, tensor in (("a", s_a), ("b", s_b)):
                    rows = cute.size(tensor) // (2 * 128)
                    buffers = [tensor.iterator.toint() + i * rows * 128 for i in range(2)]
                    mode: Any = {"leading_byte_offset": 16}
                    if cutlass.const_expr(names_next):
                        mode = {"leading_byte_offset": buffers[1], "leading_dim_mode": 1}
                    place[which] = prims.Tcgen05SmemDesc.build(
                        buffers[first // 8] + first % 8 * 16,
                        stride_byte_offset=1024,
                        layout=prims.Tcgen05SmemSwizzle.SWIZZLE_128B,
                        **mode,
                    )
                word = prims.Tcgen05MxOmmaInstrDesc.build(
                    a_dtype=cutlass.Float4E2M1FN,
                    b_dtype=cutlass.Float4E2M1FN,
                    m_dim=M,
                    n_dim=n,
                    k_dim=idesc_k,
                    a_sf_id=factor % 4,
                    b_sf_id=factor % 4,
                    scale_format=1,
                )
                scales = [
                    prims.make_tmem_ptr(base.toint() + 256 + at + factor // 4 * step_, cutlass.Uint32)
                    for at, step_ in ((0, steps[0]), (of_b, steps[1]))
                ]
                if prims.elect_sync():
                    prims.tcgen05_mma_block_scale(
                        "mxf4nvf4",
                        "cta_1",
                        prims.make_tmem_ptr(base.toint(), cutlass.Float32),
                        place["a"],
                        place["b"],
                        word,
                        step > 0,
                        *scales,
                        scale_vec_size=size or f"block{vec}",
                    )
            if prims.elect_sync():
                prims.tcgen05_commit(done)
        cute.arch.mbarrier_wait(done, 0)
        prims.tcgen05_fence("after_thread_sync")
        for part in cutlass.range_constexpr(n // 16):
            values = prims.tcgen05_ld("32x32b", prims.make_tmem_ptr(lanes + 16 * part, cutlass.Float32), num=16)
            prims.tcgen05_wait("load")
            for i in cutlass.range_constexpr(16):
                y[t, 16 * part + i] = values[i]
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 512)

    y = np.zeros((M, n), np.float32)
    arrays = [from_dlpack(z, assumed_align=16) for z in (a_bytes, b_bytes, given, y)]
    wide = [
        z[:, :k] * np.repeat(2.0 ** (e[: len(z)] - 127), vec, axis=1)[:, :k]
        for z, e in zip((x, w), exponents, strict=True)
    ]
    return kernel, arrays, (y, wide[0] @ wide[1].T)


@pytest.mark.parametrize(("n", "vec"), [(32, 16), (32, 32), (144, 16), (144, 32)])
def test_products(n: int, vec: int) -> None:
    kernel, arrays, (y, expected) = multiply(n, vec)
    launch(kernel, *arrays, block=128)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"names_next": False},
            "takes 48 bytes of each row of B from byte 96 on, which is less than that before the end",
        ),
        ({"size": "X4"}, "no factors of type .* for 24 elements each"),
        ({"idesc_k": 0}, "is not a matrix descriptor of tcgen05.mma"),
    ],
)
def test_mistakes(how: Any, message: str) -> None:
    kernel, arrays, _ = multiply(32, 16, **how)
    with pytest.raises((SimulationError, ConstraintError), match=message):
        launch(kernel, *arrays, block=128)


def test_its_text_and_where_it_is() -> None:
    atom = parse_tcgen05("SM100_128x64x96_F32E2M1E2M1_SS<K,K>_E4M3x16")
    assert atom is not None and atom.mnemonic().endswith("kind::mxf4nvf4.block_scale.block16")
    assert [atom.lacking(architecture(x)) for x in ("sm_103a", "sm_100a")] == [
        "",
        "sm_103a (no other GPU has it)",
    ]
    assert atom.descriptor.word >> 31 == 1
    assert InstructionDescriptor("mxf4", E2M1, E2M1, F32, 128, 64, scale="ue8m0", k_96=True).fields["k_96"] == 1
    needs_nvrtc()
    kernel, arrays, _ = multiply(32, 16)

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, f: cute.Tensor, y: cute.Tensor):
        kernel(a, b, f, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    compiled = tilewright.cuda.compile(cute.compile(host, *arrays).kernels[0], "sm_103a")
    assert compiled.ptx.count("kind::mxf4nvf4.block_scale.block16 [") == STEPS
    with pytest.raises(ConstraintError, match="needs sm_103a \\(no other GPU has it\\)"):
        emit(cute.compile(host, *arrays).kernels[0], "sm_100a")


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_simulator_knows_whose_it_is(arch: str) -> None:
    kernel, arrays, _ = multiply(32, 16)
    with sim.options(arch=arch):
        if arch == "sm_103a":
            launch(kernel, *arrays, block=128)
            return
        with pytest.raises(SimulationError, match="block16 needs sm_103a .*; the kernel is meant for sm_100a"):
            launch(kernel, *arrays, block=128)


def test_integers_are_not_on_sm_103a() -> None:
    for atom in (parse_tcgen05("SM100_128x64x32_S32S8S8_SS<K,K>"), DescribedMma("i8"), DescribedMma("i8", sparse=True)):
        assert atom is not None
        assert [atom.lacking(architecture(x)) for x in ("sm_100a", "sm_110a", "sm_103a", "sm_100")] == [
            "",
            "",
            "sm_100a or sm_110a",
            "sm_100a or sm_110a",
        ]
