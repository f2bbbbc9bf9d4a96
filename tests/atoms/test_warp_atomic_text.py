"""The CUDA text of synchronisation, warp and atomic instructions goes through NVRTC for every architecture."""

from __future__ import annotations

import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore, _ptx_type
from tilewright.atoms.sync import Fence, FenceProxy, SyncWarp
from tilewright.atoms.warp import ElectOne, Redux, Shuffle, Vote
from tilewright.ir.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, U32, U64, ScalarType

cuda = pytest.importorskip("tilewright.cuda.compiler")
pytest.importorskip("cuda.bindings.nvrtc")

ARCHES = ["sm_80", "sm_90a"]
NUMBERS = [I32, U32, I64, U64, F32, F64, F16, BF16]


def compiles(k: Kernel, arch: str) -> None:
    assert cuda.compile(k.function, arch).cubin


@pytest.mark.parametrize("arch", ARCHES)
def test_warp_instructions(arch: str) -> None:
    k = Kernel(gptr(I32), *(gptr(e) for e in (I8, F16, F32, F64)), max_threads=64)
    t = k.tid()
    for p in k.args[1:]:
        v = k.load(k.at(p, t))
        for kind in ("idx", "up", "down", "bfly"):
            (v,) = k.call(Shuffle(kind), [v, c(1), c(-1), c(31)], [v.type])
        k.store(k.at(p, t), v)
    n = k.load(k.at(k.args[0], t))
    for kind in ("add", "min", "max", "and", "or", "xor"):
        (n,) = k.call(Redux(kind), [n, c(-1)], [I32])
    (u,) = k.call(Redux("max"), [k.bitcast(n, U32), c(-1)], [U32])
    p = k.compare("lt", k.bitcast(u, I32), t)
    for kind in ("any", "all", "uni"):
        (p,) = k.call(Vote(kind), [p, c(-1)], [BOOL])
    (bits,) = k.call(Vote("ballot"), [p, c(-1)], [I32])
    (chosen,) = k.call(ElectOne(), [], [BOOL])
    k.call(SyncWarp(), [c(-1)])
    k.sync()
    k.bar_sync(1, 64)
    k.bar_arrive(k.select(chosen, c(1), c(2)), 64)
    for scope in ("cta", "gpu", "sys"):
        k.call(Fence(scope), [])
        k.call(Fence(scope, "acq_rel"), [])
    if arch == "sm_90a":
        k.call(Fence("cluster", "acq_rel"), [])
        for space in ("", "global", "shared::cta", "shared::cluster"):
            k.call(FenceProxy(space), [])
    k.store(k.at(k.args[0], t), bits)
    compiles(k, arch)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("elem", NUMBERS, ids=str)
def test_atomics(elem: ScalarType, arch: str) -> None:
    k = Kernel(gptr(elem), gptr(elem), smem_bytes=16)
    s = k.smem_alloc(0, 16, 16, elem)
    total = 0
    for kind in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"):
        if _ptx_type(kind, elem) is None or (arch == "sm_80" and elem == BF16):
            continue
        v = k.load(k.args[1])
        values = [v, v] if kind == "cas" else [v]
        for place in (k.args[0], s):
            (old,) = k.call(Atomic(kind), [place, *values], [elem])
            k.call(Atomic(kind, "release", "cta"), [place, *values])
            k.store(k.args[1], old)
        (old,) = k.call(Atomic(kind, "acq_rel", "sys"), [k.args[0], *values], [elem])
        k.store(k.args[1], old)
        total += 1
    if elem.width >= 32:
        for sem in ("relaxed", "acquire"):
            (v,) = k.call(OrderedLoad(sem), [k.args[0]], [elem])
            k.call(OrderedStore("release" if sem == "acquire" else sem), [k.args[1], v])
    assert total or elem == BF16
    compiles(k, arch)


@pytest.mark.parametrize(("elem", "arch"), [(F16, "sm_80"), (F16, "sm_90a"), (BF16, "sm_90a")], ids=str)
def test_atomic_pairs(elem: ScalarType, arch: str) -> None:
    k = Kernel(gptr(elem, 4), gptr(elem, 4))
    v = k.load(k.args[1], 2)
    (old,) = k.call(Atomic("add"), [k.args[0], v], [v.type])
    k.call(Atomic("add"), [k.args[0], v])
    k.store(k.args[1], old)
    compiles(k, arch)
