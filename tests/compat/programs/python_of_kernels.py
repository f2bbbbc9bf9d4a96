"""Small kernels as a Python programmer writes them: data classes, named tuples, enums, closures, objects with state."""

from __future__ import annotations
import enum
import math
from dataclasses import dataclass
from typing import Callable, NamedTuple, Optional, Tuple

import cutlass
import cutlass.cute as cute
import torch
from cutlass import Boolean, Float32, Int32, Uint32, const_expr
from cutlass.cute.runtime import from_dlpack

BLOCK = 128
PHILOX_M0, PHILOX_M1 = 0xD2511F53, 0xCD9E8D57
KEY0, KEY1 = 0x9E3779B9, 0xBB67AE85


class Mode(enum.Enum):
    MEAN = 0
    SUM = 1
    NONE = 2


class MinMax(NamedTuple):
    lo: Float32
    hi: Float32


@dataclass(frozen=True)
class Config:
    block: int = BLOCK
    mode: Mode = Mode.MEAN
    eps: float = 1e-6

    @property
    def warps(self) -> int:
        return self.block // 32


@cute.jit
def argmax_pair(v: Float32, i: Int32, ov: Float32, oi: Int32) -> Tuple[Float32, Int32]:
    better = ov > v or (ov == v and oi < i)
    return (ov, oi) if better else (v, i)


@cute.kernel
def argmax_kernel(x: cute.Tensor, out_v: cute.Tensor, out_i: cute.Tensor, cfg: cutlass.Constexpr[Config]):
    tid, *_ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    v, i = -Float32.inf, Int32(-1)
    for j in range(tid, x.shape[1], cfg.block):
        v, i = argmax_pair(v, i, x[row, j], j)
    for k in cutlass.range_constexpr(5):
        ov = cute.arch.shuffle_sync_bfly(v, 1 << k)
        oi = cute.arch.shuffle_sync_bfly(i, 1 << k)
        v, i = argmax_pair(v, i, ov, oi)
    smem = cutlass.utils.SmemAllocator()
    sv = smem.allocate_tensor(Float32, cute.make_layout(cfg.warps))
    si = smem.allocate_tensor(Int32, cute.make_layout(cfg.warps))
    w = cute.arch.warp_idx()
    if cute.arch.lane_idx() == 0:
        sv[w], si[w] = v, i
    cute.arch.sync_threads()
    if tid == 0:
        for k in cutlass.range_constexpr(1, cfg.warps):
            v, i = argmax_pair(v, i, sv[k], si[k])
        out_v[row] = v
        out_i[row] = i


@cute.jit
def argmax(x: cute.Tensor, v: cute.Tensor, i: cute.Tensor, cfg: cutlass.Constexpr[Config] = Config()):
    argmax_kernel(x, v, i, cfg).launch(grid=(x.shape[0], 1, 1), block=(cfg.block, 1, 1))


@cute.jit
def mulhilo(a: Uint32, b: cutlass.Constexpr[int]):
    p = cutlass.Uint64(a) * cutlass.Uint64(b)
    return Uint32(p >> 32), Uint32(p & 0xFFFFFFFF)


@cute.jit
def philox(c0: Uint32, seed: Uint32):
    c1 = c2 = c3 = Uint32(0)
    k0, k1 = seed, Uint32(0)
    for _ in cutlass.range_constexpr(10):
        hi0, lo0 = mulhilo(c0, PHILOX_M0)
        hi1, lo1 = mulhilo(c2, PHILOX_M1)
        c0, c1, c2, c3 = hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0
        k0 += KEY0
        k1 += KEY1
    return c0, c1, c2, c3


@cute.kernel
def dropout_kernel(x: cute.Tensor, y: cute.Tensor, p: Float32, seed: Uint32):
    tid, _, _ = cute.arch.thread_idx()
    bid, _, _ = cute.arch.block_idx()
    i = bid * BLOCK + tid
    r = philox(Uint32(i), seed)
    for k in cutlass.range_constexpr(4):
        j = 4 * i + k
        if 0 <= j < x.shape[0]:
            u = Float32(r[k] >> 8) * (1.0 / (1 << 24))
            y[j] = x[j] / (1 - p) if u >= p else Float32(0)


@cute.jit
def dropout(x: cute.Tensor, y: cute.Tensor, p: Float32, seed: Uint32):
    n = x.shape[0]
    dropout_kernel(x, y, p, seed).launch(grid=[cute.ceil_div(n, 4 * BLOCK), 1, 1], block=[BLOCK, 1, 1])


def philox_ref(i, seed):
    M = 0xFFFFFFFF
    c = [i, 0, 0, 0]
    k = [seed, 0]
    for _ in range(10):
        p0, p1 = c[0] * PHILOX_M0, c[2] * PHILOX_M1
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M, (p0 >> 32) ^ c[3] ^ k[1], p0 & M]
        k = [(k[0] + KEY0) & M, (k[1] + KEY1) & M]
    return c


@cute.kernel
def csr_kernel(indptr: cute.Tensor, indices: cute.Tensor, data: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
    tid, _, _ = cute.arch.thread_idx()
    bid, _, _ = cute.arch.block_idx()
    row = bid * BLOCK + tid
    n = indptr.shape[0] - 1
    if row < n:
        k, end = indptr[row], indptr[row + 1]
        acc = Float32(0)
        while k < end:
            acc += data[k] * x[indices[k]]
            k += 1
        y[row] = acc


@cute.jit
def csr(indptr, indices, data, x, y):
    csr_kernel(indptr, indices, data, x, y).launch(
        grid=[cute.ceil_div(indptr.shape[0] - 1, BLOCK), 1, 1], block=[BLOCK, 1, 1]
    )


@cute.kernel
def life_kernel(a: cute.Tensor, b: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    r, c = by * 8 + ty, bx * 8 + tx
    h, w = a.shape
    if r < h and c < w:
        alive = Int32(0)
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                if const_expr(dr != 0 or dc != 0):
                    alive += Int32(a[(r + dr + h) % h, (c + dc + w) % w])
        now = a[r, c] != 0
        nxt = (now and (alive == 2 or alive == 3)) or (not now and alive == 3)
        b[r, c] = cutlass.Uint8(1) if nxt else cutlass.Uint8(0)


@cute.jit
def life(a: cute.Tensor, b: cute.Tensor, steps: cutlass.Constexpr[int]):
    for s in cutlass.range_constexpr(steps):
        src, dst = (a, b) if s % 2 == 0 else (b, a)
        life_kernel(src, dst).launch(
            grid=(cute.ceil_div(a.shape[1], 8), cute.ceil_div(a.shape[0], 8), 1), block=(8, 8, 1)
        )


@cute.kernel
def xent_kernel(
    logits: cute.Tensor,
    target: cute.Tensor,
    loss: cute.Tensor,
    ignore: cutlass.Constexpr[Optional[int]],
    transform: cutlass.Constexpr[Optional[Callable]],
):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    t = target[row]
    skip = Boolean(False)
    if const_expr(ignore is not None):
        skip = t == ignore
    result = Float32(0.0)
    if not skip:
        m, s = -Float32.inf, Float32(0.0)
        for j in cutlass.range(lane, logits.shape[1], 32, unroll=4):
            x = Float32(logits[row, j])
            if const_expr(transform is not None):
                x = transform(x)
            new = cutlass.max(m, x)
            s = s * cute.math.exp(m - new) + cute.math.exp(x - new)
            m = new
        for k in cutlass.range_constexpr(5):
            om, os_ = (cute.arch.shuffle_sync_bfly(z, 16 >> k) for z in (m, s))
            new = cutlass.max(m, om)
            s = s * cute.math.exp(m - new) + os_ * cute.math.exp(om - new)
            m = new
        picked = Float32(logits[row, t])
        if const_expr(transform is not None):
            picked = transform(picked)
        result = m + cute.math.log(s) - picked
    if lane == 0:
        loss[row] = result


@cute.jit
def xent(logits, target, loss, ignore: cutlass.Constexpr = None, transform: cutlass.Constexpr = None):
    xent_kernel(logits, target, loss, ignore, transform).launch(grid=(logits.shape[0], 1, 1), block=(32, 1, 1))


class Stats:
    """carried through loops"""

    def __init__(self, lo, hi, n):
        self.lo, self.hi, self.n = lo, hi, n

    @cute.jit
    def push(self, v):
        self.lo = cutlass.min(self.lo, v)
        self.hi = cutlass.max(self.hi, v)
        self.n += 1

    def __extract_mlir_values__(self):
        return [x.ir_value() for x in (self.lo, self.hi, self.n)]

    def __new_from_mlir_values__(self, values):
        return Stats(Float32(values[0]), Float32(values[1]), Int32(values[2]))


@cute.kernel
def stats_kernel(x: cute.Tensor, out: cute.Tensor):
    tid, _, _ = cute.arch.thread_idx()
    s = Stats(Float32.inf, -Float32.inf, Int32(0))
    for j in range(tid, x.shape[0], 32):
        if x[j] > 0:
            s.push(x[j])
    mm = MinMax(s.lo, s.hi)
    mm = MinMax(
        cute.arch.warp_reduction(mm.lo, lambda a, b: cutlass.min(a, b)), cute.arch.warp_reduction(mm.hi, cute.arch.fmax)
    )
    n = cute.arch.warp_reduction_sum(s.n)
    if tid == 0:
        out[0], out[1], out[2] = mm.lo, mm.hi, Float32(n)


@cute.jit
def stats(x: cute.Tensor, out: cute.Tensor):
    stats_kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def fft_kernel(x: cute.Tensor, n: cutlass.Constexpr[int]):
    """radix 2, in shared memory; x: (2, n)"""
    tid, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    s = smem.allocate_tensor(Float32, cute.make_layout((2, n)))
    bits = int(math.log2(n))
    for half in cutlass.range_constexpr(2):
        i = tid + half * (n // 2)
        rev = Int32(0)
        for b in cutlass.range_constexpr(bits):
            rev |= ((i >> b) & 1) << (bits - 1 - b)
        s[0, rev] = x[0, i]
        s[1, rev] = x[1, i]
    cute.arch.sync_threads()
    for st in cutlass.range_constexpr(bits):
        h = 1 << st
        k = tid % h
        lo = (tid // h) * 2 * h + k
        ang = Float32(k) * (-math.pi / h)
        c, d = cute.math.cos(ang), cute.math.sin(ang)
        ar, ai = s[0, lo], s[1, lo]
        br, bi = s[0, lo + h], s[1, lo + h]
        tr, ti = br * c - bi * d, br * d + bi * c
        cute.arch.sync_threads()
        s[0, lo], s[1, lo] = ar + tr, ai + ti
        s[0, lo + h], s[1, lo + h] = ar - tr, ai - ti
        cute.arch.sync_threads()
    for half in cutlass.range_constexpr(2):
        i = tid + half * (n // 2)
        x[0, i] = s[0, i]
        x[1, i] = s[1, i]


@cute.jit
def fft(x: cute.Tensor):
    n = const_expr(x.shape[1])
    fft_kernel(x, n).launch(grid=(1, 1, 1), block=(n // 2, 1, 1))


def main():
    torch.manual_seed(0)
    x = torch.randn(5, 300, device="cuda")
    v, i = torch.empty(5, device="cuda"), torch.empty(5, device="cuda", dtype=torch.int32)
    argmax(from_dlpack(x), from_dlpack(v), from_dlpack(i))
    assert torch.equal(v, x.max(1).values) and torch.equal(i.long(), x.argmax(1))

    x = torch.randn(1000, device="cuda")
    y = torch.empty_like(x)
    seed = 1234
    dropout(from_dlpack(x).mark_layout_dynamic(), from_dlpack(y).mark_layout_dynamic(), 0.25, seed)
    for j in (0, 1, 57, 999):
        u = (philox_ref(j // 4, seed)[j % 4] >> 8) / (1 << 24)
        want = x[j] / 0.75 if u >= 0.25 else 0 * x[j]
        torch.testing.assert_close(y[j], want)
    assert 0.6 < (y != 0).float().mean() < 0.9

    dense = (torch.rand(50, 40) < 0.1).float() * torch.randn(50, 40)
    indptr = torch.tensor([0, *(dense != 0).sum(1).cumsum(0)], dtype=torch.int32)
    columns, values, vec = (dense != 0).nonzero()[:, 1], dense[dense != 0], torch.randn(40)
    out = torch.empty(50, device="cuda")
    csr(*(from_dlpack(t.cuda()) for t in (indptr, columns, values, vec)), from_dlpack(out))
    torch.testing.assert_close(out.cpu(), dense @ vec, atol=1e-5, rtol=1e-5)

    g = torch.zeros(12, 13, dtype=torch.uint8, device="cuda")
    for r, c in ((1, 2), (2, 3), (3, 1), (3, 2), (3, 3)):
        g[r, c] = 1
    h = torch.zeros_like(g)
    start = g.clone()
    life(from_dlpack(g), from_dlpack(h), 4)
    assert torch.equal(g, torch.roll(start, (1, 1), (0, 1)))

    logits = torch.randn(6, 100, device="cuda", dtype=torch.bfloat16)
    target = torch.randint(0, 100, (6,), device="cuda")
    target[2] = -100
    loss = torch.empty(6, device="cuda")

    def softcap(z):
        return cute.math.tanh(z / 5.0) * 5.0

    xent(from_dlpack(logits), from_dlpack(target), from_dlpack(loss), -100, softcap)
    ref = torch.nn.functional.cross_entropy(torch.tanh(logits.float() / 5) * 5, target, reduction="none")
    torch.testing.assert_close(loss, ref, atol=1e-4, rtol=1e-4)

    x = torch.randn(100, device="cuda")
    out = torch.empty(3, device="cuda")
    stats(from_dlpack(x), from_dlpack(out))
    pos = x[x > 0]
    torch.testing.assert_close(out.tolist(), [pos.min().item(), pos.max().item(), float(len(pos))])

    z = torch.randn(64, dtype=torch.complex64)
    ri = torch.stack([z.real, z.imag]).cuda()
    fft(from_dlpack(ri))
    w = torch.fft.fft(z)
    torch.testing.assert_close(ri.cpu(), torch.stack([w.real, w.imag]), atol=1e-4, rtol=1e-4)
    print("PASS")


if __name__ == "__main__":
    main()
