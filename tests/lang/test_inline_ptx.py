"""Inline PTX as documented programs write it: against Python's own numbers on the simulator, and against the GPU."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright._mlir import ir
from tilewright._mlir.dialects import arith, llvm, nvvm, vector
from tilewright.cutlass_dsl import T, dsl_user_op
from tilewright.errors import ConstraintError, TilewrightError

F = np.float32
WORDS = np.random.default_rng(5).integers(0, 1 << 32, (3, 32), np.uint32)
WORDS[:, :4] = [[0, 1, 0xFFFFFFFF, 0x80000000], [3, 31, 32, 33], [0x7F, 0, 5, 0x3210]]
FLOATS = np.random.default_rng(6).normal(0, 8, (3, 32)).astype(np.float32)


def words(f: Any) -> Any:
    return [int(f(*(int(v) for v in row))) & 0xFFFFFFFF for row in WORDS.T]


def signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def halves(x: Any) -> np.ndarray:
    return np.asarray(x, np.uint32).view(np.float16).reshape(-1, 2)


def dot(a: int, b: int, c: int, width: int, of_b: tuple[int, ...], signs: str) -> int:
    """c + the parts of ``a`` (``width`` bits each) times the bytes ``of_b`` of ``b``; ``signs``: "s" or "u" of each."""

    def part(x: int, i: int, bits: int, sign: str) -> int:
        value = x >> i * bits & (1 << bits) - 1
        return value - (1 << bits) if sign == "s" and value >> bits - 1 else value

    return c + sum(part(a, i, width, signs[0]) * part(b, j, 8, signs[1]) for i, j in enumerate(of_b))


def signed_field(a: int, start: int, length: int) -> int:
    """PTX ISA, "bfe": the field, filled up with its highest bit, or with the number's where it ends beyond."""
    fill = a >> min(start + length - 1, 31) & 1 if length else 0
    bits = [a >> start + i & 1 if i < length and start + i <= 31 else fill for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def of_24_bits(a: int) -> int:
    return (a & 0xFFFFFF) - (1 << 24 if a & 0x800000 else 0)


INTEGERS: list[tuple[str, Any]] = [
    ("add.u32 $0, $1, $2;", lambda a, b, c: a + b),
    ("sub.s32 $0, $1, $2;", lambda a, b, c: a - b),
    ("mul.lo.s32 $0, $1, $2;", lambda a, b, c: a * b),
    ("mul.hi.u32 $0, $1, $2;", lambda a, b, c: a * b >> 32),
    ("mul.hi.s32 $0, $1, $2;", lambda a, b, c: signed(a) * signed(b) >> 32),
    ("mad.lo.u32 $0, $1, $2, $3;", lambda a, b, c: a * b + c),
    ("{ .reg .u64 t; mul.wide.u32 t, $1, $2; shr.u64 t, t, 16; cvt.u32.u64 $0, t; }", lambda a, b, c: a * b >> 16),
    # Chains of carries: the upper 32 bits of sums, differences and products.
    ("{ .reg .u32 t; add.cc.u32 t, $1, $2; addc.u32 $0, $3, $2; }", lambda a, b, c: (a + b >> 32) + c + b),
    ("{ .reg .u32 t; sub.cc.u32 t, $1, $2; subc.u32 $0, $3, $2; }", lambda a, b, c: c - b - (a < b)),
    (
        "{ .reg .u32 t; sub.cc.u32 t, $1, $2; subc.cc.u32 t, $3, $3; subc.u32 $0, $1, $3; }",
        lambda a, b, c: a - c - (a < b),
    ),
    (
        "{ .reg .u32 t; add.cc.u32 t, $1, $2; addc.cc.s32 t, $3, -1; addc.u32 $0, 0, 0; }",
        lambda a, b, c: (a + b >> 32) + c + 0xFFFFFFFF >> 32,
    ),
    (
        "{ .reg .u32 t; add.cc.u32 t, $1, $2; addc.cc.u32 t, -1, 0; addc.u32 $0, 0, 0; }",
        lambda a, b, c: a + b >> 32,
    ),
    (
        "{ .reg .u32 t; mad.lo.cc.u32 t, $1, $2, $3; madc.hi.u32 $0, $1, $2, $3; }",
        lambda a, b, c: (a * b + c >> 32) + c,
    ),
    (
        "{ .reg .u32 t; mad.hi.cc.s32 t, $1, $2, $3; addc.u32 $0, 0, 0; }",
        lambda a, b, c: ((signed(a) * signed(b) >> 32 & 0xFFFFFFFF) + c) >> 32,
    ),
    (
        "{ .reg .u64 x, y; mov.b64 x, {$1, $2}; mov.b64 y, {$2, $3}; add.cc.u64 x, x, y; addc.u32 $0, $1, 0; }",
        lambda a, b, c: a + ((a | b << 32) + (b | c << 32) >> 64),
    ),
    (  # a guarded statement writes no flag in the other lanes
        "{ .reg .u32 t; .reg .pred p; setp.lt.u32 p, $3, 0x80000000; add.cc.u32 t, $1, $2; @p add.cc.u32 t, 0, 0; "
        "addc.u32 $0, 0, 0; }",
        lambda a, b, c: 0 if c < 1 << 31 else a + b >> 32,
    ),
    ("min.s32 $0, $1, $2;", lambda a, b, c: min(signed(a), signed(b))),
    ("max.u32 $0, $1, $2;", lambda a, b, c: max(a, b)),
    ("and.b32 $0, $1, $2;", lambda a, b, c: a & b),
    ("or.b32 $0, $1, 0xFF00;", lambda a, b, c: a | 0xFF00),
    ("xor.b32 $0, $1, $2;", lambda a, b, c: a ^ b),
    ("not.b32 $0, $1;", lambda a, b, c: ~a),
    # Constants of floats are bits where an instruction takes bits; names inside of braces hide those around.
    ("xor.b32 $0, $1, 0f80000000;", lambda a, b, c: a ^ 1 << 31),
    ("{ .reg .b32 t; mov.b32 t, 0f3F800000; add.u32 $0, $1, t; }", lambda a, b, c: a + 0x3F800000),
    (
        "{ .reg .b64 t; mov.b64 t, 0dBFF0000000000001; shr.u64 t, t, 32; cvt.u32.u64 $0, t; }",
        lambda a, b, c: 0xBFF00000,
    ),
    ("add.u32 $0, $1, 017U;", lambda a, b, c: a + 15),
    (
        "{ .reg .b32 t; mov.b32 t, $1; { .reg .b32 t; mov.b32 t, $2; { .reg .b32 t; mov.b32 t, 5; } "
        "add.u32 $0, t, 1; } add.u32 $0, $0, t; }",
        lambda a, b, c: a + b + 1,
    ),
    ("shl.b32 $0, $1, $2;", lambda a, b, c: a << b if b < 32 else 0),
    ("shr.u32 $0, $1, $2;", lambda a, b, c: a >> b),
    ("shr.s32 $0, $1, $2;", lambda a, b, c: signed(a) >> min(b, 31)),
    ("shf.l.wrap.b32 $0, $1, $2, $3;", lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32),
    ("shf.r.clamp.b32 $0, $1, $2, $3;", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("lop3.b32 $0, $1, $2, $3, 0xE8;", lambda a, b, c: a & b | a & c | b & c),
    ("lop3.b32 $0, $1, $2, $3, 0x96;", lambda a, b, c: a ^ b ^ c),
    ("prmt.b32 $0, $1, $2, 0x6240;", lambda a, b, c: a & 0xFF00FF | (b & 0xFF00FF) << 8),
    ("sad.u32 $0, $1, $2, $3;", lambda a, b, c: abs(a - b) + c),
    ("sad.s32 $0, $1, $2, $3;", lambda a, b, c: abs(signed(a) - signed(b)) + c),
    ("dp4a.u32.u32 $0, $1, $2, $3;", lambda a, b, c: dot(a, b, c, 8, (0, 1, 2, 3), "uu")),
    ("dp4a.s32.u32 $0, $1, $2, $3;", lambda a, b, c: dot(a, b, c, 8, (0, 1, 2, 3), "su")),
    ("dp4a.s32.s32 $0, $1, $2, $3;", lambda a, b, c: dot(a, b, c, 8, (0, 1, 2, 3), "ss")),
    ("dp2a.lo.u32.s32 $0, $1, $2, $3;", lambda a, b, c: dot(a, b, c, 16, (0, 1), "us")),
    ("dp2a.hi.s32.s32 $0, $1, $2, $3;", lambda a, b, c: dot(a, b, c, 16, (2, 3), "ss")),
    ("popc.b32 $0, $1;", lambda a, b, c: a.bit_count()),
    ("clz.b32 $0, $1;", lambda a, b, c: 32 - a.bit_length()),
    ("bfind.u32 $0, $1;", lambda a, b, c: a.bit_length() - 1),
    ("brev.b32 $0, $1;", lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
    ("bfe.u32 $0, $1, 4, 12;", lambda a, b, c: a >> 4 & 0xFFF),
    ("bfind.s32 $0, $1;", lambda a, b, c: (a ^ (0xFFFFFFFF if a >> 31 else 0)).bit_length() - 1),
    (
        "{ .reg .b32 s, n; and.b32 s, $2, 63; and.b32 n, $3, 63; bfe.s32 $0, $1, s, n; }",
        lambda a, b, c: signed_field(a, b & 63, c & 63),
    ),
    ("mul24.lo.u32 $0, $1, $2;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("mul24.hi.u32 $0, $1, $2;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("mad24.lo.s32 $0, $1, $2, $3;", lambda a, b, c: of_24_bits(a) * of_24_bits(b) + c),
    ("mad24.hi.s32 $0, $1, $2, $3;", lambda a, b, c: (of_24_bits(a) * of_24_bits(b) >> 16) + c),
    ("bfi.b32 $0, $1, $2, 8, 8;", lambda a, b, c: b & ~0xFF00 | (a & 255) << 8),
    (
        "{ .reg .b64 h; createpolicy.fractional.L2::evict_first.b64 h, 1.0; mov.b32 $0, $1; }",
        lambda a, b, c: a,
    ),
    (
        "{ .reg .pred p, q; setp.lt.s32 p|q, $1, $2; selp.b32 $0, $1, $3, q; }",
        lambda a, b, c: a if signed(a) >= signed(b) else c,
    ),
    (
        "{ .reg .pred p; setp.hi.u32 p, $1, $2; mov.b32 $0, $3; @p mov.b32 $0, 7; @!p add.s32 $0, $0, 1; }",
        lambda a, b, c: 7 if a > b else c + 1,
    ),
    ("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo}; } // swapped", lambda a, b, c: a >> 16 | a << 16),
    ("cvt.s32.s8 $0, $1;", lambda a, b, c: (a & 255) - (256 if a & 128 else 0)),
    ("cvt.sat.u8.s32 $0, $1;", lambda a, b, c: min(max(signed(a), 0), 255)),
    ("{ .reg .b32 z; and.b32 z, $2, 1; or.b32 z, z, 2; rem.u32 $0, $1, z; }", lambda a, b, c: a % (b & 1 | 2)),
]
REALS: list[tuple[str, Any]] = [
    ("fma.rn.f32 $0, $1, $2, $3;", lambda a, b, c: a.astype(np.longdouble) * b + c),
    ("add.rn.f32 $0, $1, $2;", lambda a, b, c: a + b),
    ("mul.f32 $0, $1, 0f3F000000;", lambda a, b, c: a / 2),
    ("max.f32 $0, $1, $2;", lambda a, b, c: np.maximum(a, b)),
    ("abs.f32 $0, $1;", lambda a, b, c: np.abs(a)),
    ("add.sat.f32 $0, $1, $2;", lambda a, b, c: np.clip(a + b, 0, 1)),
    ("{ .reg .s32 i; cvt.rni.s32.f32 i, $1; cvt.rn.f32.s32 $0, i; }", lambda a, b, c: np.rint(a)),
    (
        "{ .reg .b32 p; cvt.rn.f16x2.f32 p, $1, $2; .reg .b16 l, h; mov.b32 {l, h}, p; cvt.f32.f16 $0, h; }",
        lambda a, b, c: a.astype(np.float16),
    ),
]
APPROXIMATE: list[tuple[str, Any]] = [
    ("ex2.approx.ftz.f32 $0, $1;", np.exp2),
    ("tanh.approx.f32 $0, $1;", np.tanh),
    ("{ abs.f32 $0, $1; lg2.approx.f32 $0, $0; }", lambda a: np.log2(np.abs(a))),
    ("{ abs.f32 $0, $1; rsqrt.approx.f32 $0, $0; }", lambda a: 1 / np.sqrt(np.abs(a))),
    ("rcp.approx.ftz.f32 $0, $1;", lambda a: 1 / a),
    ("sin.approx.f32 $0, $1;", np.sin),
]


@cute.kernel
def three_to_one(a: cute.Tensor, out: cute.Tensor, text: cutlass.Constexpr, letter: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    kind = T.f32() if letter == "f" else T.ui32()
    operands = [a[i, t].ir_value() for i in range(3)]
    out[t] = out.element_type(llvm.inline_asm(kind, operands, text, f"={letter},{letter},{letter},{letter}"))


@cute.jit
def run(a: cute.Tensor, out: cute.Tensor, text: cutlass.Constexpr, letter: cutlass.Constexpr) -> None:
    three_to_one(a, out, text, letter).launch(grid=(1, 1, 1), block=(32, 1, 1))


def on_simulator(text: str, values: np.ndarray) -> np.ndarray:
    out = np.zeros(32, values.dtype)
    run(values, out, text, "f" if values.dtype == F else "r")
    return out


@pytest.mark.parametrize(("text", "wanted"), INTEGERS)
def test_integer_instructions(text: str, wanted: Any) -> None:
    assert on_simulator(text, WORDS).tolist() == words(wanted)


@pytest.mark.parametrize(("text", "wanted"), REALS)
def test_float_instructions(text: str, wanted: Any) -> None:
    np.testing.assert_array_equal(on_simulator(text, FLOATS), np.asarray(wanted(*FLOATS)).astype(F))


ALL = (1 << 32) - 1
OF_LANES: list[tuple[str, Any]] = [
    ("mov.u32 $0, %lanemask_eq;", lambda a, t: 1 << t),
    ("mov.u32 $0, %lanemask_lt;", lambda a, t: (1 << t) - 1),
    ("mov.u32 $0, %lanemask_le;", lambda a, t: (2 << t) - 1),
    ("mov.u32 $0, %lanemask_ge;", lambda a, t: ALL ^ (1 << t) - 1),
    ("mov.u32 $0, %lanemask_gt;", lambda a, t: ALL ^ (2 << t) - 1),
    ("{ .reg .b64 w; mov.u64 w, %clock64; mov.u64 w, %globaltimer; mov.u32 $0, %laneid; }", lambda a, t: t),
    (
        "{ .reg .b32 k; and.b32 k, $1, 3; match.any.sync.b32 $0, k, 0xFFFFFFFF; }",
        lambda a, t: sum(1 << i for i in range(32) if (a[i] ^ a[t]) & 3 == 0),
    ),
    ("{ .reg .b32 k; mov.b32 k, 5; match.all.sync.b32 $0, k, 0xFFFFFFFF; }", lambda a, t: ALL),
    ("match.all.sync.b32 $0, $1, 0xFFFFFFFF;", lambda a, t: 0),
]


@pytest.mark.parametrize(("text", "wanted"), OF_LANES)
def test_masks_of_lanes(text: str, wanted: Any) -> None:
    a = WORDS[0].tolist()
    assert on_simulator(text, WORDS).tolist() == [wanted(a, t) for t in range(32)]


@pytest.mark.parametrize(("text", "wanted"), APPROXIMATE)
def test_approximate_functions(text: str, wanted: Any) -> None:
    np.testing.assert_allclose(on_simulator(text, FLOATS), wanted(FLOATS[0].astype(np.float64)), rtol=2e-7)


@pytest.mark.gpu
@pytest.mark.parametrize("text", [text for text, _ in [*INTEGERS, *OF_LANES, *REALS]])
def test_the_gpu_gives_the_same(text: str) -> None:
    torch = pytest.importorskip("torch")
    values = FLOATS if any(text == t for t, _ in REALS) else WORDS
    out = torch.zeros(32, dtype=torch.float32 if values is FLOATS else torch.int32, device="cuda")
    given = torch.from_numpy(values.view(np.int32 if values is WORDS else F)).cuda()
    run(given, out, text, "f" if values is FLOATS else "r")
    expected = on_simulator(text, values)
    np.testing.assert_array_equal(out.cpu().numpy().view(expected.dtype), expected)


def test_the_texts_assemble() -> None:
    for values, cases in ((WORDS, [*INTEGERS, *OF_LANES]), (FLOATS, [*REALS, *APPROXIMATE])):
        text = "\n".join(t for t, _ in cases)
        program = cute.compile(run, values, np.zeros(32, values.dtype), text, "f" if values is FLOATS else "r")
        assert cutlass.cuda.compile(program.kernels[0], "sm_90a").spills == 0


@dsl_user_op
def minmax(a: Any, b: Any, *, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> Any:
    both = llvm.inline_asm(
        llvm.StructType.get_literal([T.i32(), T.i32()]),
        [cutlass.Int32(a).ir_value(loc=loc, ip=ip), cutlass.Int32(b).ir_value(loc=loc, ip=ip)],
        "min.s32 $0, $2, $3;\n\tmax.s32 $1, $2, $3;",
        "=&r,=&r,r,r",
        has_side_effects=False,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )
    return [cutlass.Int32(llvm.extractvalue(T.i32(), both, [i], loc=loc, ip=ip)) for i in range(2)]


def test_several_results_packed_operands_and_numbers() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        out[0, t], out[1, t] = minmax(x[t], 7 - x[t])
        pair = cute.make_rmem_tensor(2, cutlass.Float16)
        pair[0], pair[1] = x[t].to(cutlass.Float16), cutlass.Float16(2)
        doubled = llvm.inline_asm(T.vector(2, T.f16()), [pair.load().ir_value()], "add.rn.f16x2 $0, $1, $1;", "=r,r")
        seen = cute.TensorSSA(doubled, 2, cutlass.Float16)
        out[2, t] = (seen[0] + seen[1]).to(cutlass.Int32)
        out[3, t] = cutlass.Int32(
            llvm.inline_asm(
                T.i32(),
                [x[t].ir_value(), cutlass.Int32(5).ir_value(), x[t].ir_value()],
                "mad.lo.s32 $0, $1, $2, $3;",
                "=r,r,n,r",
            )
        )
        plus_lane = "{ .reg .b32 l; mov.u32 l, %laneid; add.s32 $0, $0, l; }"
        out[4, t] = cutlass.Int32(llvm.inline_asm(T.i32(), [x[t].ir_value()], plus_lane, "=r,0"))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x, out = np.arange(32, dtype=np.int32), np.zeros((5, 32), np.int32)
    host(x, out)
    np.testing.assert_array_equal(out, [np.minimum(x, 7 - x), np.maximum(x, 7 - x), 2 * x + 4, 6 * x, 2 * x])
    (staged,) = cute.compile(host, x, out).kernels
    assert cutlass.cuda.compile(staged, "sm_90a").spills == 0


@cute.kernel
def letters_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    """A register of 128 bits, a part of the opcode, a number and a 16-bit register by their letters."""
    t, _, _ = cute.arch.thread_idx()
    wide = [(cutlass.Uint64(x[t]) + i).ir_value() for i in range(2)]
    pair = cutlass.Uint128(llvm.inline_asm(cutlass.Uint128.ir_type, wide, "mov.b128 $0, {$1, $2};", "=q,l,l"))
    swap = (
        "{ .reg .b64 a, b; .reg .pred p; mov.b128 {a, b}, $1; setp.gt.u64 p, a, 3; mov.b128 $0, $1; "
        "@p mov.b128 $0, {b, a}; }"
    )
    swapped = cutlass.Uint128(llvm.inline_asm(cutlass.Uint128.ir_type, [pair.ir_value()], swap, "=q,q"))
    out[0, t], out[1, t] = cutlass.Int64(swapped), cutlass.Int64(swapped >> 64)
    compared = llvm.inline_asm(
        T.i32(), [x[t].ir_value(), "max", cutlass.Int32(9).ir_value()], "${2}.s32 $0, $1, $3;", "=r,r,C,i"
    )
    out[2, t] = cutlass.Int64(cutlass.Int32(compared))
    half = llvm.inline_asm(T.i16(), [cutlass.Int16(x[t]).ir_value()], "add.s16 $0, $1, $1;", "=h,h")
    out[3, t] = cutlass.Int64(cutlass.Int16(half))


@cute.jit
def letters(x: cute.Tensor, out: cute.Tensor) -> None:
    letters_kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


X = np.arange(32, dtype=np.int32)
LETTERS = [np.where(X > 3, X + 1, X), np.where(X > 3, X, X + 1), np.maximum(X, 9), 2 * X]


def test_every_letter_of_the_documentation() -> None:
    out = np.zeros((4, 32), np.int64)
    letters(X, out)
    np.testing.assert_array_equal(out, LETTERS)
    assert cutlass.cuda.compile(cute.compile(letters, X, out).kernels[0], "sm_90a").spills == 0


@pytest.mark.gpu
def test_every_letter_on_the_gpu() -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(4, 32, dtype=torch.int64, device="cuda")
    letters(torch.from_numpy(X).cuda(), out)
    np.testing.assert_array_equal(out.cpu().numpy(), LETTERS)


def test_warp_instructions() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        mine = [cutlass.Int32(t * t).ir_value()]
        out[0, t] = cutlass.Int32(
            llvm.inline_asm(
                T.i32(), mine, "shfl.sync.bfly.b32 $0, $1, 1, 31, 0xffffffff;", "=r,r", has_side_effects=True
            )
        )
        out[1, t] = cutlass.Int32(
            llvm.inline_asm(
                T.i32(),
                mine,
                "{ .reg .pred p; setp.gt.s32 p, $1, 100; vote.sync.ballot.b32 $0, p, 0xffffffff; }",
                "=r,r",
                has_side_effects=True,
            )
        )
        out[2, t] = cutlass.Int32(
            llvm.inline_asm(
                T.i32(),
                mine,
                "{ .reg .pred q; .reg .b32 d; shfl.sync.up.b32 d|q, $1, 4, 0, -1; selp.b32 $0, 1, 0, q; }",
                "=r,r",
                has_side_effects=True,
            )
        )
        out[3, t] = cutlass.Int32(
            llvm.inline_asm(T.i32(), mine, "redux.sync.add.s32 $0, $1, 0xffffffff;", "=r,r", has_side_effects=True)
        )

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out, t = np.zeros((4, 32), np.int32), np.arange(32)
    host(out)
    ballot = np.int64(sum(1 << i for i in range(32) if i * i > 100)).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(out, [(t ^ 1) ** 2, [ballot] * 32, t >= 4, [(t * t).sum()] * 32])


def test_unknown_opcode_error_asks_for_a_ptx_action() -> None:
    with pytest.raises(Exception, match=r"does not know bmsk\.clamp\.b32(?s:.)*ptx_action\('bmsk\.clamp\.b32'\)"):
        on_simulator("bmsk.clamp.b32 $0, $1, $2;", WORDS)

    @sim.ptx_action("bmsk.wrap.b32")
    def _(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return ((np.uint32(1) << (b & 31)) - np.uint32(1)) << (a & 31)

    found = on_simulator("bmsk.wrap.b32 $0, $1, $2;", WORDS)
    assert found.tolist() == words(lambda a, b, c: ((1 << (b & 31)) - 1) << (a & 31))

    whole = "{ .reg .b32 x; ld.global.nc.b32 x, [$1]; }"

    @sim.ptx_action(whole)
    def _(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return a + b + c

    assert on_simulator(whole, WORDS).tolist() == words(lambda a, b, c: a + b + c)


@pytest.mark.parametrize(
    ("text", "constraints", "why"),
    [
        ("add.s32 $0, $1, $2;", "=r,r", "1 operand constraints in '=r,r' for 3"),
        ("add.s32 $0, $1, $2;", "=r,r,r,x", "no constraint 'x'"),
        ("add.f64 $0, $1, $2;", "=r,r,r,d", "an operand of type u32 in a register of 64 bits"),
        ("$1.s32 $0, $2, $3;", "=r,C,r,r", "operand 0, of constraint C, is not a Python string"),
        ("add.s32 $0, $1, $2;", "=r,r,r,n", "operand 2, of constraint n, is not an integer known while staging"),
        ("ld.b128 $0, $1;", "=r,r,r,q", "the simulator does not know ld.b128"),
    ],
)
def test_constraints_are_checked(text: str, constraints: str, why: str) -> None:
    @cute.kernel
    def kernel(a: cute.Tensor) -> None:
        a[0, 0] = cutlass.Uint32(llvm.inline_asm(T.ui32(), [a[i, 0].ir_value() for i in range(3)], text, constraints))

    @cute.jit
    def host(a: cute.Tensor) -> None:
        kernel(a).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises(TilewrightError, match=why):
        host(WORDS)


@pytest.mark.parametrize(
    "text",
    ["add.s32 $0, t, 1;", "add.s32 $0, $1, %laneid;", "{ .reg .b32 t; add.s32 $0, t, 1; }", "L: bra L;"]
    + ["addc.u32 $0, $1, $1;", "mov.u32 $0, %pm0;", "mov.u32 $0, %other;"],
)
def test_texts_that_cannot_run(text: str) -> None:
    with pytest.raises(Exception, match="inline PTX"):
        on_simulator(text, WORDS)


def test_inline_ptx_string_operand_needs_its_own_constraint() -> None:
    @cute.kernel
    def kernel() -> None:
        llvm.inline_asm(T.i32(), ["add"], "$1.s32 $0, 1, 2;", "=r,r")

    @cute.jit
    def host() -> None:
        kernel().launch(grid=1, block=1)

    with pytest.raises(ConstraintError, match="operand 0 is a string; its constraint is C, not r"):
        host()


def test_internals_can_be_imported_and_say_what_they_are_when_used() -> None:
    assert ir.IntegerType.get_signless(32) == T.i32() and ir.F32Type.get() == T.f32()
    assert ir.VectorType.get([2], ir.F16Type.get()) == T.vector(2, T.f16())
    assert Optional[ir.Location] and vector is not arith  # noqa: UP045 - the spelling that is tested
    with pytest.raises(ConstraintError, match=r"nvvm\.cluster_wait is not here yet: it is an internal of another"):
        nvvm.cluster_wait()
    with pytest.raises(AttributeError, match=r"arith\.CmpIPredicate has no attribute 'slt'.*is an internal of another"):
        _ = arith.CmpIPredicate.slt
