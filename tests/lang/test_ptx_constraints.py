"""The constraint letters of inline PTX that CUDA's documentation lists, each as a result, an operand and both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright._mlir.dialects import llvm
from tilewright.cutlass_dsl import T
from tilewright.errors import ConstraintError

N = 32
TYPES: dict[str, Any] = {  # letter: the numbers, and their suffix in PTX
    "h": (cutlass.Int16, "s16"),
    "r": (cutlass.Int32, "s32"),
    "l": (cutlass.Int64, "s64"),
    "f": (cutlass.Float32, "f32"),
    "d": (cutlass.Float64, "f64"),
}


@cute.kernel
def sums(x: cute.Tensor, out: cute.Tensor, letter: cutlass.Constexpr) -> None:
    """Rows of ``out``: x + x by a result and two operands; x - 3x by a register read and written; x + x by a shared
    one."""
    t, _, _ = cute.arch.thread_idx()
    number, suffix = TYPES[letter]
    value, kind = x[t], number.ir_type
    out[0, t] = number(
        llvm.inline_asm(kind, [value, value], f"add.{suffix} $0, $1, $2;", f"={letter},{letter},{letter}")
    )
    out[1, t] = number(llvm.inline_asm(kind, [value, value * 3], f"sub.{suffix} $0, $0, $1;", f"+{letter},{letter}"))
    out[2, t] = number(llvm.inline_asm(kind, [value, value], f"add.{suffix} $0, $0, $1;", f"=&{letter},{letter},0"))


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor, letter: cutlass.Constexpr) -> None:
    sums(x, out, letter).launch(grid=1, block=N)


def operands(letter: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `run` takes, and what it must give."""
    x = (np.arange(N) - 5).astype(TYPES[letter][0].numpy_dtype)
    return x, np.zeros((3, N), x.dtype), np.stack([2 * x, -2 * x, 2 * x])


@pytest.mark.parametrize("letter", TYPES)
def test_registers_as_results_operands_and_both(letter: str) -> None:
    x, out, wanted = operands(letter)
    run(x, out, letter)
    np.testing.assert_array_equal(out, wanted)
    (kernel,) = cute.compile(run, x, out, letter).kernels
    assert cutlass.cuda.compile(kernel, "sm_90a").spills == 0


@pytest.mark.gpu
@pytest.mark.parametrize("letter", TYPES)
def test_registers_on_the_gpu(letter: str) -> None:
    torch = pytest.importorskip("torch")
    x, out, wanted = operands(letter)
    on_gpu = torch.from_numpy(out).cuda()
    run(torch.from_numpy(x).cuda(), on_gpu, letter)
    np.testing.assert_array_equal(on_gpu.cpu().numpy(), wanted)


@cute.kernel
def others_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    """128 bits read and written; several results of both forms; integers, a truth and a string in the text."""
    t, _, _ = cute.arch.thread_idx()
    wide = cutlass.Uint128(cutlass.Uint64(x[t])) + (cutlass.Uint128(7) << 64)
    swap = "{ .reg .b64 a, b; mov.b128 {a, b}, $0; mov.b128 $0, {b, a}; }"
    swapped = cutlass.Uint128(llvm.inline_asm(cutlass.Uint128.ir_type, [wide.ir_value()], swap, "+q"))
    out[0, t], out[1, t] = cutlass.Int64(swapped), cutlass.Int64(swapped >> 64)
    both = llvm.inline_asm(
        llvm.StructType.get_literal([T.i32(), T.f32(), T.i32()]),
        [cutlass.Float32(x[t]), x[t] * 8, x[t] * 5],
        "add.s32 $0, $3, 1; add.f32 $1, $1, $1; sub.s32 $2, $2, $3;",
        "=r,+f,+r,r",
    )
    results = [llvm.extractvalue(kind, both, [i]) for i, kind in enumerate([T.i32(), T.f32(), T.i32()])]
    out[2, t], out[3, t] = cutlass.Int64(cutlass.Int32(results[0])), cutlass.Int64(cutlass.Float32(results[1]))
    out[4, t] = cutlass.Int64(cutlass.Int32(results[2]))
    texts = [x[t], "add", cutlass.Int32(-9), x[t] * 0, cutlass.Boolean(True)]
    out[5, t] = cutlass.Int64(
        cutlass.Int32(
            llvm.inline_asm(T.i32(), texts, "$1.s32 $0, $0, $2; add.s32 $0, $0, $3; add.s32 $0, $0, $4;", "+r,C,n,r,i")
        )
    )


@cute.jit
def others(x: cute.Tensor, out: cute.Tensor) -> None:
    others_kernel(x, out).launch(grid=1, block=N)


X = np.arange(N, dtype=np.int32)
OTHERS = [0 * X + 7, X, 5 * X + 1, 2 * X, 3 * X, X - 8]


def test_128_bits_several_results_and_parts_of_the_text() -> None:
    out = np.zeros((6, N), np.int64)
    others(X, out)
    np.testing.assert_array_equal(out, OTHERS)
    (kernel,) = cute.compile(others, X, out).kernels
    assert cutlass.cuda.compile(kernel, "sm_90a").spills == 0


@pytest.mark.gpu
def test_128_bits_on_the_gpu() -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(6, N, dtype=torch.int64, device="cuda")
    others(torch.from_numpy(X).cuda(), out)
    np.testing.assert_array_equal(out.cpu().numpy(), OTHERS)


TABLE = (
    r"the constraints are\n  h, r, l, q +a register of 16, 32, 64, 128 bits\n  f, d +(?s:.)*\+r +(?s:.)*n, i +(?s:.)*C "
)


@pytest.mark.parametrize(
    ("constraints", "operands", "why"),
    [
        ("=r,x", 1, rf"no constraint 'x' \(in '=r,x'\); {TABLE}"),
        ("=n,r", 1, "no constraint '=n'"),
        ("+C,r", 2, r"no constraint '\+C'"),
        ("=r,&r", 1, "no constraint '&r'"),
        ("=rf,r", 1, "no constraint '=rf'"),
        ("=r,1", 1, "no constraint '1'"),
        ("=r,m", 1, "no constraint 'm'"),
        ("r,=r", 1, "results stand before operands"),
        ("=r,0,0", 2, "two operands begin result 0 in '=r,0,0'"),
        ("+r,0", 2, r"two operands begin result 0 in '\+r,0'"),
        ("+r", 0, r"1 operand constraints in '\+r' for 0 operands"),
    ],
)
def test_other_constraints_are_refused(constraints: str, operands: int, why: str) -> None:
    @cute.kernel
    def kernel() -> None:
        llvm.inline_asm(T.i32(), [cutlass.Int32(1)] * operands, "mov.b32 $0, 1;", constraints)

    @cute.jit
    def host() -> None:
        kernel().launch(grid=1, block=1)

    with pytest.raises(ConstraintError, match=why):
        host()


@pytest.mark.parametrize("letter", ["n", "i"])
def test_a_number_of_the_text_is_an_integer(letter: str) -> None:
    @cute.kernel
    def kernel() -> None:
        llvm.inline_asm(T.i32(), [cutlass.Float32(1.5)], "mov.b32 $0, $1;", f"=r,{letter}")

    @cute.jit
    def host() -> None:
        kernel().launch(grid=1, block=1)

    with pytest.raises(ConstraintError, match=f"operand 0, of constraint {letter}, is not an integer known while stag"):
        host()
