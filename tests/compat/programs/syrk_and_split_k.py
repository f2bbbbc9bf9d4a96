"""C = A A^T, lower triangle only, persistent tile scheduler of our own; and split-K with atomics and a semaphore."""

from dataclasses import dataclass
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import torch
from cutlass import Int32, Float32
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import extract_mlir_values, new_from_mlir_values


@dataclass
class ParamsBase:
    def __extract_mlir_values__(self):
        values, self._values_pos = [], []
        for f in self.__dataclass_fields__:
            obj = getattr(self, f)
            v = extract_mlir_values(obj) if not isinstance(obj, (int, type(None))) else []
            values += v
            self._values_pos.append(len(v))
        return values

    def __new_from_mlir_values__(self, values):
        out = []
        for f, n in zip(self.__dataclass_fields__, self._values_pos):
            obj = getattr(self, f)
            out.append(new_from_mlir_values(obj, values[:n]) if n else obj)
            values = values[n:]
        return self.__class__(*out)


class TriangularScheduler:
    def __init__(self, num_tiles: Int32, tile_idx: Int32, step: Int32, *, loc=None, ip=None):
        self._num_tiles = num_tiles
        self._tile_idx = tile_idx
        self._step = step
        self._loc, self._ip = loc, ip

    @staticmethod
    def create(num_blocks: Int32, *, loc=None, ip=None):
        total = num_blocks * (num_blocks + 1) // 2
        return TriangularScheduler(total, cute.arch.block_idx()[0], cute.arch.grid_dim()[0], loc=loc, ip=ip)

    @cute.jit
    def get_current_work(self, *, loc=None, ip=None) -> utils.WorkTileInfo:
        f = cute.math.sqrt(Float32(8 * self._tile_idx + 1))
        m = Int32((f - 1.0) * 0.5)
        # rounding
        if m * (m + 1) // 2 > self._tile_idx:
            m = m - 1
        if (m + 1) * (m + 2) // 2 <= self._tile_idx:
            m = m + 1
        n = self._tile_idx - m * (m + 1) // 2
        return utils.WorkTileInfo((m, n, Int32(0)), self._tile_idx < self._num_tiles)

    def initial_work_tile_info(self, *, loc=None, ip=None):
        return self.get_current_work(loc=loc, ip=ip)

    def advance_to_next_work(self, *, loc=None, ip=None):
        self._tile_idx += self._step

    def __extract_mlir_values__(self):
        values, self._values_pos = [], []
        for obj in [self._num_tiles, self._tile_idx, self._step]:
            v = extract_mlir_values(obj)
            values += v
            self._values_pos.append(len(v))
        return values

    def __new_from_mlir_values__(self, values):
        obj_list = []
        for obj, n in zip([self._num_tiles, self._tile_idx, self._step], self._values_pos):
            obj_list.append(new_from_mlir_values(obj, values[:n]))
            values = values[n:]
        return TriangularScheduler(*tuple(obj_list), loc=self._loc)


@cute.kernel
def syrk_kernel(mA: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma, bM: cutlass.Constexpr[int]):
    tidx, _, _ = cute.arch.thread_idx()
    thr_mma = tiled_mma.get_slice(tidx)
    sched = TriangularScheduler.create(cute.ceil_div(mA.shape[0], bM))
    work = sched.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        gA = cute.local_tile(mA, (bM, 16), (m, None))
        gB = cute.local_tile(mA, (bM, 16), (n, None))
        gC = cute.local_tile(mC, (bM, bM), (m, n))
        tCgA, tCgB, tCgC = thr_mma.partition_A(gA), thr_mma.partition_B(gB), thr_mma.partition_C(gC)
        acc = tiled_mma.make_fragment_C(tCgC)
        acc.fill(0.0)
        for k in range(cute.size(gA, mode=[2])):
            rA = tiled_mma.make_fragment_A(tCgA[None, None, None, k])
            rB = tiled_mma.make_fragment_B(tCgB[None, None, None, k])
            cute.autovec_copy(tCgA[None, None, None, k], rA)
            cute.autovec_copy(tCgB[None, None, None, k], rB)
            cute.gemm(tiled_mma, acc, rA, rB, acc)
        cC = thr_mma.partition_C(cute.local_tile(cute.make_identity_tensor(mC.shape), (bM, bM), (m, n)))
        for i in cutlass.range_constexpr(cute.size(acc)):
            r, c = cC[i]
            if r >= c:
                tCgC[i] = acc[i]
        sched.advance_to_next_work()
        work = sched.get_current_work()


@cute.jit
def syrk(a: cute.Tensor, c: cute.Tensor, blocks: Int32):
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1))
    )
    syrk_kernel(a, c, mma, 32).launch(grid=[blocks, 1, 1], block=[128, 1, 1])


@cute.kernel
def splitk_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mC: cute.Tensor,
    ws: cute.Tensor,
    sem: cute.Tensor,
    tiled_mma: cute.TiledMma,
    splits: cutlass.Constexpr[int],
    mode: cutlass.Constexpr[str],
):
    tidx, _, _ = cute.arch.thread_idx()
    m, n, z = cute.arch.block_idx()
    gdm, gdn, _ = cute.arch.grid_dim()
    thr = tiled_mma.get_slice(tidx)
    gA = cute.local_tile(mA, (32, 16), (m, None))
    gB = cute.local_tile(mB, (32, 16), (n, None))
    gC = cute.local_tile(mC, (32, 32), (m, n))
    tA, tB, tC = thr.partition_A(gA), thr.partition_B(gB), thr.partition_C(gC)
    acc = tiled_mma.make_fragment_C(tC)
    acc.fill(0.0)
    kt = cute.size(gA, mode=[2])
    per = cute.ceil_div(kt, splits)
    for k in cutlass.range(z * per, cutlass.min((z + 1) * per, kt)):
        rA = tiled_mma.make_fragment_A(tA[None, None, None, k])
        rB = tiled_mma.make_fragment_B(tB[None, None, None, k])
        cute.autovec_copy(tA[None, None, None, k], rA)
        cute.autovec_copy(tB[None, None, None, k], rB)
        cute.gemm(tiled_mma, acc, rA, rB, acc)
    if cutlass.const_expr(mode == "atomic"):
        for i in cutlass.range_constexpr(cute.size(acc)):
            cute.arch.atomic_add(tC.iterator + tC.layout(i), acc[i], sem="relaxed", scope="gpu")
    else:
        # workspace, last block reduces
        gW = cute.local_tile(ws, (32, 32), (m, n, None))
        tW = thr.partition_C(gW)
        for i in cutlass.range_constexpr(cute.size(acc)):
            tW[None, None, None, z][i] = acc[i]
        cute.arch.fence_acq_rel_gpu()
        cute.arch.sync_threads()
        smem = utils.SmemAllocator()
        last = smem.allocate_tensor(Int32, cute.make_layout(1))
        if tidx == 0:
            last[0] = cute.arch.atomic_add((sem.iterator + (m + n * gdm)), Int32(1), sem="acq_rel", scope="gpu")
        cute.arch.sync_threads()
        if last[0] == splits - 1:
            cute.arch.fence_acq_rel_gpu()
            acc.fill(0.0)
            for s in cutlass.range_constexpr(splits):
                part = cute.make_fragment_like(acc)
                cute.autovec_copy(tW[None, None, None, s], part)
                acc.store(acc.load() + part.load())
            cute.autovec_copy(acc, tC)


@cute.jit
def splitk(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    ws: cute.Tensor,
    sem: cute.Tensor,
    splits: cutlass.Constexpr[int],
    mode: cutlass.Constexpr[str] = "atomic",
):
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1))
    )
    gm, gn = cute.ceil_div(c.shape, (32, 32))
    splitk_kernel(a, b, c, ws, sem, mma, splits, mode).launch(grid=[gm, gn, splits], block=[128, 1, 1])


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randint(-3, 4, (128, 48), device="cuda").to(torch.bfloat16)
    c = torch.zeros(128, 128, device="cuda")
    A = from_dlpack(a, assumed_align=16).mark_layout_dynamic()
    C = from_dlpack(c, assumed_align=16).mark_layout_dynamic()
    syrk(A, C, 3)
    assert torch.equal(c, (a.float() @ a.float().T).tril())

    a = torch.randint(-3, 4, (64, 160), device="cuda").half()
    b = torch.randint(-3, 4, (96, 160), device="cuda").half()
    for mode in ("atomic", "serial"):
        c = torch.zeros(64, 96, device="cuda")
        ws = torch.empty(4, 64, 96, device="cuda").permute(1, 2, 0)
        sem = torch.zeros(6, device="cuda", dtype=torch.int32)
        args = [from_dlpack(t) for t in (a, b, c, ws, sem)]
        splitk(*args, 4, mode)
        assert torch.equal(c, a.float() @ b.float().T)
    print("PASS")
