"""Toy instructions, and a tensor-core tile kernel made of them: what compile tests need before there are real ones."""

from __future__ import annotations

from tests.cuda.build import Kernel, pointer
from tests.cuda.test_semantics import loop
from tilewright.ir.core import Op, Value
from tilewright.ir.instruction import Emitter, Instruction
from tilewright.ir.types import F16, F32, I32

TOY_MMA = """\
__device__ __forceinline__ void toy_mma(float* d, const uint32_t* a, const uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}"""


class ToyMma(Instruction):
    """``mma.sync.m16n8k16`` f16 -> f32 over ``places``: the offsets of each step in d, a, b."""

    name = "toy.mma.m16n8k16"

    def emit(self, out: Emitter, op: Op) -> None:
        helper = out.helper("toy_mma", TOY_MMA)
        d, a, b = op.operands
        for d_at, a_at, b_at in op.attrs["places"]:
            out.line(f"{helper}(&{out.value(d)}[{d_at}], &{out.register(a, a_at)}, &{out.register(b, b_at)});")


class ToyLdmatrix(Instruction):
    """``ldmatrix.x4``: operands fragment, one shared pointer per repetition; ``registers`` are the fragment offsets."""

    name = "toy.ldmatrix.x4"

    def emit(self, out: Emitter, op: Op) -> None:
        fragment, *pointers = op.operands
        for at, p in zip(op.attrs["registers"], pointers, strict=True):
            regs = ", ".join(f'"=r"({out.register(fragment, at + 2 * i)})' for i in range(4))
            out.line(
                'asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"\n'
                f'             : {regs} : "r"({out.shared_address(p)}));'
            )


class ToyCpAsync(Instruction):
    """``cp.async`` of 16 bytes: operands source, destination; waits at once when ``wait`` is set."""

    name = "toy.cp_async"

    def emit(self, out: Emitter, op: Op) -> None:
        source, destination = op.operands
        out.line(
            'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: '
            f'"r"({out.shared_address(destination)}), "l"({out.value(source)}) : "memory");'
        )
        if op.attrs.get("wait"):
            out.line('asm volatile("cp.async.commit_group;\\ncp.async.wait_group 0;" ::: "memory");')


class ToyBarrier(Instruction):
    """``__syncthreads()``."""

    name = "toy.barrier"
    blocking = True

    def emit(self, out: Emitter, op: Op) -> None:
        out.line("__syncthreads();")


class ToyShuffle(Instruction):
    """A butterfly shuffle that gives a result: operand value; needs Hopper, to test that too."""

    name = "toy.shuffle"
    min_arch = 90

    def emit(self, out: Emitter, op: Op) -> None:
        name = out.declare(op.result)
        with out.block("if (true)"):
            out.line(f"{name} = __shfl_xor_sync(0xffffffffu, {out.value(op.operands[0])}, 1);")


def gemm(bm: int = 128, bn: int = 128, bk: int = 32, stages: int = 3) -> Kernel:
    """A 128x128 tile with 4 warps of 64x64, cp.async in ``stages`` (addresses are plausible, numbers are not)."""
    size = (bm + bn) * bk * 2
    attrs = {"max_threads": 128, "smem_bytes": size * stages}
    k = Kernel("gemm", attrs, A=pointer(F16), B=pointer(F16), C=pointer(F32), K=I32)
    s_a = k.smem_alloc(0, bm * bk * 2 * stages, 128, F16, "sA")
    s_b = k.smem_alloc(bm * bk * 2 * stages, bn * bk * 2 * stages, 128, F16, "sB")
    tid = k.sreg("tid.x")
    acc = k.frag_alloc(F32, 128, "acc")
    k.frag_store(acc, k.splat(k.constant(F32, 0.0), 128), range(128))
    a = k.frag_alloc(F16, 4 * 8, "rA")
    b = k.frag_alloc(F16, 8 * 4, "rB")

    def times(x: Value, y: int) -> Value:
        return k.binary("mul", x, k.number(y))

    def plus(x: Value, y: Value | int) -> Value:
        return k.binary("add", x, k.number(y) if isinstance(y, int) else y)

    def step(i: Value, stage: Value) -> tuple[Value]:
        offset = times(stage, bm * bk)
        for part in range(bm * bk // (128 * 8)):
            for source, shared in ((k.A, s_a), (k.B, s_b)):
                at = plus(times(tid, 8), part * 1024)
                row = plus(times(i, bk), plus(times(tid, 8), k.binary("mul", k.K, k.number(part))))
                last = part == bm * bk // 1024 - 1 and source is k.B
                k.call(ToyCpAsync(), [k.at(source, row, 16), k.at(k.at(shared, offset, 16), at, 16)], wait=last)
        k.call(ToyBarrier(), [])
        for block in range(bk // 16):
            lane = k.binary("and", tid, k.number(31))
            base = plus(times(lane, bk), block * 16)
            pointers = [k.at(k.at(s_a, offset, 16), plus(base, 16 * bk * m), 16) for m in range(4)]
            k.call(ToyLdmatrix(), [a, *pointers], registers=(0, 8, 16, 24))
            pointers = [k.at(k.at(s_b, offset, 16), plus(base, 16 * bk * n), 16) for n in range(4)]
            k.call(ToyLdmatrix(), [b, *pointers], registers=(0, 8, 16, 24))
            places = tuple((4 * (m + 4 * n), 8 * m, 4 * n) for n in range(8) for m in range(4))
            k.call(ToyMma(), [acc, a, b], places=places)
        following = plus(stage, 1)
        wrapped = k.select(k.compare("eq", following, k.number(stages)), k.number(0), following)
        return (wrapped,)

    loop(k, k.number(0), k.binary("div", k.K, k.number(bk)), k.number(1), [k.number(0)], step, hint="tile", unroll=1)
    result = k.frag_load(acc, range(128))
    scaled = k.binary("mul", result, k.splat(k.constant(F32, 0.5), 128))
    out = k.at(k.C, times(tid, 128), 16)
    for part in range(32):
        k.store(k.at(out, part * 4, 16), k.shuffle(scaled, range(part * 4, part * 4 + 4)))
    return k
