"""``tcgen05.mma`` in inline PTX, by descriptors that the program makes: the text is taken apart, and is exact."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.blackwell.test_mma import KINDS, in_shared_memory, op_of
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tilewright import cute
from tilewright._mlir.dialects import llvm
from tilewright.atoms.matrix_descriptor import TCGEN05, MatrixDescriptor
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.testing import per_thread

HIGH = MatrixDescriptor(1, 64, "SW128", 0, TCGEN05).word >> 32
LOW = 1 << 16
ONE_TEXT = """{{
  .reg .pred leader, p;
  .reg .b32 low;
  .reg .b64 a, b;
  elect.sync _|leader, -1;
  setp.ne.b32 p, $3, 0;
  mov.b64 a, {{$1, {high}}};
  mov.b64 b, {{$2, {high}}};
  {guard} tcgen05.mma.cta_group::1.kind::f16 [$0], a, b, {word}, p;
  add.u32 low, $1, 2;
  mov.b64 a, {{low, {high}}};
  add.u32 low, $2, 2;
  mov.b64 b, {{low, {high}}};
  {guard} tcgen05.mma.cta_group::1.kind::f16 [$0], a, b, {word}, 1;
}}"""
DECLARED = """.reg .b32 word;
.reg .b64 desc_<2>;
mov.b32 word, {word};
mov.b64 desc_0, {{$0, {high}}};
add.u32 desc_low, $0, 2;
mov.b64 desc_1, {{desc_low, {high}}};"""
WITH_DECLARED = """{{
  .reg .pred leader, p;
  .reg .b32 low;
  .reg .b64 b;
  elect.sync _|leader, -1;
  setp.ne.b32 p, $2, 0;
  mov.b64 b, {{$1, {high}}};
  @leader tcgen05.mma.cta_group::1.kind::f16 [$0], desc_0, b, word, p;
  add.u32 low, $1, 2;
  mov.b64 b, {{low, {high}}};
  @leader tcgen05.mma.cta_group::1.kind::f16 [$0], desc_1, b, word, 1;
}}"""
WAIT = """{
  .reg .pred over;
  AGAIN: mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1, 10000000;
  @over bra DONE;
  bra AGAIN;
  DONE:
}"""


def emit(text: str, *operands: Any) -> None:
    values = [cutlass.Int32(x).ir_value() for x in operands]
    llvm.inline_asm(None, values, text, ",".join("r" * len(values)), has_side_effects=True)


def issue(how: str, place: Any, a: Any, b: Any, keep: bool) -> None:
    word = hex(op_of("f16", 128, 64).instruction().descriptor.word)
    known = {"high": hex(HIGH), "word": word, "guard": "" if how == "all threads" else "@leader"}
    if how == "declared":
        if not keep:
            emit(DECLARED.replace(".reg .b32 word;", ".reg .b32 word, desc_low;").format(**known), a)
        emit(WITH_DECLARED.format(**known), place, b, int(keep))
    else:
        text = ONE_TEXT.format(**known)
        if how == "some lanes" and keep:  # the second turn: D / 2 + A * B, but in lanes 3 and 64
            mask = "mov.b32 m0, 8; mov.b32 m1, 0; mov.b32 m2, 1;"
            text = text.replace(".reg .b32 low;", f".reg .b32 low, m0, m1, m2;\n  {mask}")
            text = text.replace(f"{word}, p;", f"{word}, {{m0, m1, m2, m1}}, p, 1;")
            text = text.replace(f"{word}, 1;", f"{word}, {{m0, m1, m2, m1}}, 1;")
        if how == "weight stationary":  # with 128 rows its D is like that of any other
            text = re.sub(
                r"mma\.cta_group::1\.kind::f16( .*);", r"mma.ws.cta_group::1.kind::f16.collector::b1::fill\1, 0;", text
            )
        emit(text, place, a, b, int(keep))


def product(how: str) -> tuple[Any, Any]:
    """y (128, 64) = 2 * x (128, 32) * w (64, 32), by four MMAs, and what NumPy says."""
    op = op_of("f16", 128, 64)

    @cute.kernel
    def kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(64, cutlass.Float32)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(op)
        block = mma.get_slice(0)
        a = in_shared_memory(mma, "A", cutlass.Float16, (128, 64), KINDS.K_SW128)
        b = in_shared_memory(mma, "B", cutlass.Float16, (64, 64), KINDS.K_SW128)
        own_x, own_w, own_y = block.partition_A(x), block.partition_B(w), block.partition_C(y)
        for i in range(t, cute.size(a), 128):
            a[i] = own_x[i]
        for i in range(t, cute.size(b), 128):
            b[i] = own_w[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        starts = [(part.iterator.toint() & 0x3FFFF) >> 4 | LOW for part in (a, b)]
        if warp == 0:
            for turn in cutlass.range_constexpr(2):
                issue(how, base.toint(), starts[0], starts[1], turn > 0)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        llvm.inline_asm(
            None, [done.toint().ir_value(), cutlass.Int32(0).ir_value()], WAIT, "r,r", has_side_effects=True
        )
        cute.arch.tcgen05_fence_after_thread_sync()
        sums = cute.make_tensor(base, mma.make_fragment_C(own_y.shape).layout)[(None, None), 0, 0]
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x8), cutlass.Float32), sums
        )
        mine = load.get_slice(t)
        out = mine.partition_D(own_y[(None, None), 0, 0])
        registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        cute.copy(load, mine.partition_S(sums), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, out)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 64)

    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (rows, 64)).astype(np.float16) for rows in (128, 64))
    y = np.zeros((128, 64), np.float32)
    launch(kernel, from_dlpack(x), from_dlpack(w), from_dlpack(y), block=128)
    return y, 2 * x[:, :32].astype(np.float32) @ w[:, :32].astype(np.float32).T


@pytest.mark.parametrize("how", ["own registers", "declared", "weight stationary"])
def test_products_in_inline_ptx(how: str) -> None:
    got, wanted = product(how)
    np.testing.assert_array_equal(got, wanted)


def test_lanes_are_left_alone_and_d_is_scaled() -> None:
    """By two MMAs of each turn; the first of the second turn halves D."""
    got, wanted = product("some lanes")
    wanted *= 0.75  # twice the product: half of one and another one
    wanted[[3, 64]] *= 2 / 3  # one
    np.testing.assert_array_equal(got, wanted)


def test_each_thread_would_issue_one() -> None:
    with pytest.raises(SimulationError, match="by 32 threads of a warp: each of them would issue one"):
        product("all threads")


def test_registers_of_a_load_are_waited_for() -> None:
    """By the compiler where the program does not; where it does, no further wait is added."""

    def waits(written: bool) -> int:
        @cute.kernel
        def kernel(y: cute.Tensor):
            base, warp = allocated(32, cutlass.Float32)
            t, _, _ = cute.arch.thread_idx()
            memory = cute.make_tensor(base, cute.make_layout((128, 8), stride=(65536, 1)))
            wide = tcgen05.Repetition.x8
            put, get = (
                tcgen05.make_tmem_copy(cute.make_copy_atom(op(wide), cutlass.Float32), memory)
                for op in (tcgen05.St32x32bOp, tcgen05.Ld32x32bOp)
            )
            held = cute.make_rmem_tensor(get.get_slice(t).partition_D(memory).shape, cutlass.Float32)
            held.fill(cutlass.Float32(t))
            cute.copy(put, held, put.get_slice(t).partition_D(memory))
            cute.arch.fence_view_async_tmem_store()
            held.fill(0.0)
            for turn in cutlass.range(2, unroll=1):
                if turn > 0:
                    y[t] = held[0] + held[7]
                cute.copy(get, get.get_slice(t).partition_S(memory), held)
                if cutlass.const_expr(written):
                    cute.arch.fence_view_async_tmem_load()
            cute.arch.fence_view_async_tmem_load()
            cute.arch.sync_threads()
            if warp == 0:
                cute.arch.dealloc_tmem(base, 32)

        y = np.zeros(128, np.float32)
        compiled = cute.compile(one_launch(kernel), from_dlpack(y))
        with cutlass.sim.options(check="default"):
            compiled(from_dlpack(y))
        np.testing.assert_array_equal(y, 2 * np.arange(128))
        return sum(
            op.opcode == "call" and op.attrs["atom"].mnemonic() == "tcgen05.wait::ld"
            for op in compiled.kernels[0].walk()
        )

    assert (waits(True), waits(False)) == (2, 2)


def one_launch(kernel: Any) -> Any:
    @cute.jit
    def host(y: cute.Tensor):
        kernel(y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return host


@pytest.mark.parametrize("kind", ["pred", "b8"])
def test_registers_of_the_function_have_16_bits_and_more(kind: str) -> None:
    @cute.kernel
    def kernel():
        emit(f".reg .{kind} x;")

    @cute.jit
    def run():
        kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(ConstraintError, match=rf"\.{kind} x for the whole function .* 16, 32, 64 bits"):
        cute.compile(run)


@pytest.mark.parametrize("text", [".reg .f16x2 x; mov.b32 x, 3;", "{ .reg .f16x2 x; mov.b32 x, 3; bar.warp.sync -1; }"])
def test_registers_of_two_halves_have_32_bits(text: str) -> None:
    per_thread(lambda t: emit(text), 32)
