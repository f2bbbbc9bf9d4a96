"""Warp instructions against the pseudocode of the PTX ISA, lane by lane in Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright.atoms.sync import Fence, FenceProxy, SyncWarp
from tilewright.atoms.warp import ElectOne, Redux, ReduxFloat, Shuffle, Vote
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.types import BOOL, F16, F32, F64, I32, U32, ScalarType

pytestmark = pytest.mark.usefixtures("values_unchecked")

FULL = -1


def ptx_source(kind: str, lane: int, b: int, control: int) -> int:
    """PTX ISA, shfl.sync."""
    bval, cval, mask = b & 31, control & 31, (control >> 8) & 31
    max_lane = (lane & mask) | (cval & ~mask & 31)
    min_lane = lane & mask
    if kind == "up":
        j = lane - bval
        return j if j >= max_lane else lane
    j = {"down": lane + bval, "bfly": lane ^ bval, "idx": min_lane | (bval & ~mask & 31)}[kind]
    return j if j <= max_lane else lane


def shuffle(kind: str, elem: ScalarType, offset: int, control: int) -> tuple[np.ndarray, np.ndarray]:
    k = Kernel(gptr(elem), gptr(elem), I32)
    t = k.tid()
    v = k.load(k.at(k.args[0], t))
    (r,) = k.call(Shuffle(kind), [v, k.args[2], c(FULL), c(control)], [elem])
    k.store(k.at(k.args[1], t), r)
    x = (np.arange(96) * 3).astype(elem.dtype)
    y = np.zeros(96, elem.dtype)
    k.run(x, y, offset, block=96)
    return x, y


@pytest.mark.parametrize("kind", ["idx", "up", "down", "bfly"])
@pytest.mark.parametrize("segment", [0, 0b11000, 0b11100, 0b10000])
def test_shuffles_follow_the_ptx_pseudocode(kind: str, segment: int) -> None:
    for offset in (0, 1, 3, 8, 17, 31):
        for clamp in (0, 31, 7):
            x, y = shuffle(kind, I32, offset, (segment << 8) | clamp)
            want = [x[32 * (i // 32) + ptx_source(kind, i % 32, offset, (segment << 8) | clamp)] for i in range(96)]
            assert y.tolist() == want, (offset, clamp)


@pytest.mark.parametrize("elem", [F16, F32, F64, I32], ids=str)
def test_a_butterfly_reduction_sums_a_warp(elem: ScalarType) -> None:
    k = Kernel(gptr(elem), gptr(elem))
    t = k.tid()
    v = k.load(k.at(k.args[0], t))
    for step in (16, 8, 4, 2, 1):
        (other,) = k.call(Shuffle("bfly"), [v, c(step), c(FULL), c(31)], [elem])
        v = k.binary("add", v, other)
    k.store(k.at(k.args[1], t), v)
    x, y = (np.arange(64) % 13).astype(elem.dtype), np.zeros(64, elem.dtype)
    k.run(x, y, block=64)
    assert (y.reshape(2, 32) == x.reshape(2, 32).astype(float).sum(1)[:, None]).all()


def test_votes() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    p = k.compare("lt", k.binary("rem", t, c(5)), k.binary("shr", t, c(5)))
    for i, kind in enumerate(("any", "all", "uni")):
        (r,) = k.call(Vote(kind), [p, c(FULL)], [BOOL])
        k.store(k.at(k.args[0], k.add(t, 256 * i)), k.cast(r, I32))
    (bits,) = k.call(Vote("ballot"), [p, c(FULL)], [I32])
    k.store(k.at(k.args[0], k.add(t, 768)), bits)
    y = np.zeros(1024, np.int32)
    k.run(y, block=256)
    i = np.arange(256)
    p = (i % 5 < i // 32).reshape(8, 32)
    y = y.reshape(4, 8, 32)
    assert (y[0] == p.any(1)[:, None]).all() and (y[1] == p.all(1)[:, None]).all()
    assert (y[2] == (p.all(1) | ~p.any(1))[:, None]).all()
    assert (y[3].view(np.uint32) == (p.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1)[:, None]).all()


def test_votes_of_a_part_of_the_warp() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    with k.if_(k.compare("lt", t, c(8))):
        (bits,) = k.call(Vote("ballot"), [k.compare("gt", t, c(3)), c(0xFF)], [I32])
        k.store(k.at(k.args[0], t), bits)
    y = np.zeros(32, np.int32)
    k.run(y)
    assert y[:8].tolist() == [0xF0] * 8 and not y[8:].any()


def test_a_lane_outside_its_member_mask_is_an_error() -> None:
    k = Kernel(gptr(I32))
    k.call(Vote("ballot"), [k.compare("gt", k.tid(), c(3)), c(0xFF)], [I32])
    with pytest.raises(SimulationError, match="lane 8 executes it but is not in its member mask(.|\n)*test_warp.py"):
        k.run(np.zeros(1, np.int32))


@pytest.mark.parametrize("divided", ["by a branch", "by a loop"])
def test_a_member_that_is_elsewhere_is_an_error(divided: str) -> None:
    """The sum of 20 ones over a whole warp is undefined on a GPU: it must not come out as 20."""
    k = Kernel(gptr(I32))
    t = k.tid()

    def body() -> None:
        (v,) = k.call(Shuffle("bfly"), [c(1), c(16), c(FULL), c(31)], [I32])
        k.store(k.at(k.args[0], t), v)

    if divided == "by a branch":
        with k.if_(k.compare("lt", t, c(20))):
            body()
    else:
        k.loop(0, k.select(k.compare("lt", t, c(20)), c(2), c(1)), lambda i: (body(), [])[1], [])
    with pytest.raises(SimulationError, match="0xffffffff names lane 20, which does not(.|\n)*thread .0, 0, 0"):
        k.run(np.zeros(32, np.int32))


@pytest.mark.parametrize("elem", [I32, F32], ids=str)
def test_a_lane_beyond_the_block_gives_nothing_to_build_on(elem: ScalarType) -> None:
    k = Kernel(gptr(elem))
    t = k.tid()
    (v,) = k.call(Shuffle("bfly"), [k.cast(t, elem), c(16), c(FULL), c(31)], [elem])
    k.store(k.at(k.args[0], t), v)
    y = np.zeros(20, elem.dtype)
    k.run(y, block=20)
    assert y[:4].tolist() == [16, 17, 18, 19]
    assert np.isnan(y[4:16]).all() if elem.is_float else (y[4:16] < -1000).all()


@pytest.mark.parametrize("kind", ["add", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("elem", [I32, U32], ids=str)
def test_redux(kind: str, elem: ScalarType) -> None:
    k = Kernel(gptr(elem), gptr(elem))
    t = k.tid()
    v = k.load(k.at(k.args[0], t))
    with k.if_(k.compare("lt", t, c(40))):
        (r,) = k.call(Redux(kind), [v, k.select(k.compare("lt", t, c(32)), c(FULL), c(0xFF))], [elem])
        k.store(k.at(k.args[1], t), r)
    x = np.random.default_rng(0).integers(0, 2**32, 64, dtype=np.uint32).view(elem.dtype)
    y = np.zeros(64, elem.dtype)
    k.run(x, y, block=64)
    fold = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[kind]
    assert (y[:32] == fold.reduce(x[:32], dtype=elem.dtype)).all()
    assert (y[32:40] == fold.reduce(x[32:40], dtype=elem.dtype)).all()


def test_elect_one_chooses_one_lane_of_each_warp_that_is_whole() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    with k.if_(k.compare("lt", t, c(64))):
        (chosen,) = k.call(ElectOne(), [], [BOOL])
        with k.if_(chosen):
            k.store(k.at(k.args[0], t), c(1))
    y = np.zeros(96, np.int32)
    k.run(y, block=96)
    assert np.flatnonzero(y).tolist() == [0, 32]


def test_fences_and_syncwarp_run_anywhere() -> None:
    k = Kernel()
    with k.if_(k.compare("lt", k.tid(), c(3))):
        k.call(Fence("gpu"), [])
        k.call(Fence("cluster", "acq_rel"), [])
        k.call(FenceProxy(), [])
        k.call(SyncWarp(), [c(7)])
    k.run()


REDUX_FLOATS = [(kind, a, n) for kind in ("min", "max") for a in (False, True) for n in (False, True)]


def redux_floats(kind: str, absolute: bool, nan: bool) -> Kernel:
    k = Kernel(gptr(F32), gptr(F32), max_threads=96)
    t = k.tid()
    v = k.load(k.at(k.args[0], t))
    with k.if_(k.compare("lt", t, c(72))):
        mask = k.select(k.compare("lt", t, c(64)), c(FULL), c(0xFF))
        (r,) = k.call(ReduxFloat(kind, absolute, nan), [v, mask], [F32])
        k.store(k.at(k.args[1], t), r)
    return k


@pytest.mark.parametrize(("kind", "absolute", "nan"), REDUX_FLOATS)
def test_redux_of_floats(kind: str, absolute: bool, nan: bool) -> None:
    x = np.random.default_rng(0).standard_normal(96).astype(np.float32)
    x[5] = x[64:72] = np.nan
    x[32:64] = np.where(np.arange(32) % 2, 0.0, -0.0)
    x[72:] = 1e9 if kind == "max" else -1e9  # lanes outside of the mask
    y = np.zeros(96, np.float32)
    redux_floats(kind, absolute, nan).run(x, y, block=96)
    seen = np.abs(x) if absolute else x
    if nan:
        assert np.isnan(y[:32]).all()
    else:
        assert (y[:32] == (np.nanmin if kind == "min" else np.nanmax)(seen[:32])).all()
    assert (y[32:64] == 0).all() and (np.signbit(y[32:64]) == (kind == "min" and not absolute)).all()
    assert (y[64:72].view(np.uint32) == 0x7FFFFFFF).all() and not y[72:].any()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_the_text_of_redux_of_floats(arch: str) -> None:
    compiler = pytest.importorskip("tilewright.cuda.compiler")
    pytest.importorskip("cuda.bindings.nvrtc")
    for kind, absolute, nan in REDUX_FLOATS:
        artifact = compiler.compile(redux_floats(kind, absolute, nan).function, arch)
        one = f"redux.sync.{kind}{'.abs' * absolute}{'.NaN' * nan}.f32"
        assert artifact.cubin and (one in artifact.cuda) == (arch in ("sm_100a", "sm_103a"))


def test_unknown_warp_operations_are_refused_while_staging() -> None:
    for wrong in (
        lambda: Shuffle("left"),
        lambda: Vote("some"),
        lambda: Redux("mul"),
        lambda: ReduxFloat("add"),
        lambda: Fence("cluster"),
        lambda: FenceProxy("x"),
    ):
        with pytest.raises(ConstraintError):
            wrong()
    k = Kernel(gptr(F32))
    with pytest.raises(ConstraintError, match="reduce floats with shuffles at .*test_warp.py"):
        k.call(Redux("add"), [k.load(k.args[0]), c(FULL)], [F32])
    with pytest.raises(ConstraintError, match="takes no operands"):
        from tilewright.atoms.sync import SyncThreads

        k.call(SyncThreads(), [c(1)])
    with pytest.raises(ConstraintError, match="multiple of 32"):
        k.bar_sync(1, 33)
