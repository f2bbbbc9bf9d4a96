"""analyse_copy against the simulator: the same copy, run with a profile, counts the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.analysis import CopyReport, analyse_copy, gmem, smem
from tilewright.atoms.names import copy_by_name
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.layout import ComposedLayout, Layout, Swizzle, SymbolicInt, make_layout, tile_to_shape
from tilewright.sim.events import Observer
from tilewright.sim.profiling import LaunchProfiler
from tilewright.tiled import CopyAtom, make_tiled_copy_A, make_tiled_copy_C, make_tiled_copy_tv, make_tiled_mma

NUMPY = {16: np.float16, 32: np.float32, 64: np.float64, 8: np.int8}
TYPES = {8: cute.Int8, 16: cute.Float16, 32: cute.Float32, 64: cute.Float64}


class One:
    """The one copy in a kernel. A side is "smem" with a layout, "gmem" (the argument), or registers."""

    def __init__(self, tiled: Any, source: Any, destination: Any) -> None:
        self.tiled, self.sides = tiled, (source, destination)

    @cute.jit
    def __call__(self, mX: cute.Tensor):
        self.kernel(mX).launch(grid=(1, 1, 1), block=(self.tiled.size, 1, 1))

    @cute.kernel
    def kernel(self, mX: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        thread = self.tiled.get_slice(tidx)
        shape = mX.shape
        allocator = cutlass.utils.SmemAllocator()
        parts = []
        for side, part in zip(self.sides, (thread.partition_S, thread.partition_D), strict=True):
            if cutlass.const_expr(side == "gmem"):
                parts.append(part(mX))
            elif cutlass.const_expr(side is not None):
                parts.append(part(allocator.allocate_tensor(mX.element_type, side, 128)))
            else:
                parts.append(cute.make_rmem_tensor(part(cute.make_identity_tensor(shape)).shape, mX.element_type))
                parts[-1].fill(mX.element_type(0.0) if mX.element_type.is_float else 0)
        cute.copy(self.tiled, parts[0], parts[1])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)


class Counted:
    """What the simulator saw: bytes, shared requests and wavefronts, and global sectors by sets of lanes' addresses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sectors: dict[str, int] = {"load": 0, "store": 0}
        self.requests: dict[str, int] = {"load": 0, "store": 0}
        access, pointed = LaunchProfiler.access, LaunchProfiler.pointed

        def count(verb: str, buffer: Any, off: Any, one: Any, mask: Any) -> None:
            if buffer.word == "global":
                assert mask is None
                for part in range(one.parts):
                    for warp in np.asarray(off).reshape(-1, 32) + part * one.width:
                        self.sectors[verb] += len({byte // 32 for o in warp for byte in range(o, o + one.width)})
                        self.requests[verb] += 1

        def met(watch: Any, verb: str, buffer: Any, group: Any, off: Any, one: Any, mask: Any, values: Any) -> None:
            access(watch, verb, buffer, group, off, one, mask, values)
            count(verb, buffer, off, one, mask)

        def at(watch: Any, verb: str, buffer: Any, group: Any, pointer: Any, one: Any, mask: Any, values: Any) -> None:
            pointed(watch, verb, buffer, group, pointer, one, mask, values)
            count(verb, buffer, pointer.off, one, mask)

        monkeypatch.setattr(LaunchProfiler, "access", met)
        monkeypatch.setattr(LaunchProfiler, "pointed", at)
        monkeypatch.setattr(LaunchProfiler, "pointed_together", Observer.pointed_together)

    def run(self, tiled: Any, source: Any, destination: Any, array: np.ndarray[Any, Any]) -> Any:
        layouts = [
            side.layout if side is not None and side.space.value == "smem" else side and "gmem"
            for side in (source, destination)
        ]
        with sim.profile() as report:
            One(tiled, *layouts)(from_dlpack(array, assumed_align=16))
        return report.kernels[0]


def check(report: CopyReport, profile: Any, counted: Counted) -> None:
    warps = -(-report.threads // 32)
    copies = {name: n for name, n in profile.instructions.items() if name in report.instructions}
    assert copies == {name: warps * n for name, n in report.instructions.items()}
    assert report.bank_conflicts == profile.bank_conflicts
    for side, verb in ((report.source, "load"), (report.destination, "store")):
        if side is None:
            continue
        space = "shared" if side.memory.space.value == "smem" else "global"
        assert side.bytes == profile.bytes[f"{space} {verb}"]
        if space == "shared":
            assert side.requests == sum(n for (v, _), n in profile.requests.items() if v == verb)
            assert side.cost == sum(n for (v, _), n in profile.wavefronts.items() if v == verb)
        else:
            assert (side.requests, side.cost) == (counted.requests[verb], counted.sectors[verb])


def array(shape: tuple[int, int], bits: int, pitch: int = 0, transposed: bool = False) -> np.ndarray[Any, Any]:
    """An array that starts at a multiple of 128 bytes; ``pitch`` elements from row to row."""
    rows, columns = shape[::-1] if transposed else shape
    pitch = pitch or columns
    raw = np.zeros(rows * pitch * bits // 8 + 128, np.uint8)
    start = -raw.ctypes.data % 128
    made = raw[start : start + rows * pitch * bits // 8].view(NUMPY[bits]).reshape(rows, pitch)[:, :columns]
    return made.T if transposed else made


def layout_of(x: np.ndarray[Any, Any]) -> Layout:
    return Layout(x.shape, tuple(s // x.itemsize for s in x.strides))


def universal(bits: int, width: int, threads: Layout, values: Layout) -> Any:
    return make_tiled_copy_tv(CopyAtom(copy_by_name(f"UniversalCopy<uint{width}_t>"), TYPES[bits]), threads, values)


ROWS, COLUMNS = make_layout((16, 8), stride=(8, 1)), Layout((32, 4))
SMEM_16 = {
    "naive": Layout((64, 64), (64, 1)),
    "padded": Layout((64, 64), (72, 1)),
    "swizzled": ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1))),
    "half swizzle": ComposedLayout(Swizzle(2, 3, 3), 0, Layout((64, 64), (64, 1))),
    "tiled swizzle": tile_to_shape(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))), (64, 64), (0, 1)),
}


@pytest.mark.parametrize("threads", [ROWS, COLUMNS], ids=["rows", "columns"])
@pytest.mark.parametrize("name", SMEM_16)
@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("store", [False, True])
def test_universal_copies(name: str, width: int, threads: Layout, store: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    tiled = universal(16, width, threads, make_layout((1, 8), stride=(0, 1)))
    sides = (None, smem(SMEM_16[name])) if store else (smem(SMEM_16[name]), None)
    check(analyse_copy(tiled, *sides), counted.run(tiled, *sides, array((64, 64), 16)), counted)


@pytest.mark.parametrize("bits,width", [(8, 8), (8, 32), (8, 128), (32, 32), (32, 64), (32, 128), (64, 64), (64, 128)])
def test_elements_of_other_widths(bits: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    tiled = universal(bits, width, COLUMNS, make_layout((1, 128 // bits), stride=(0, 1)))
    x = array((64, 64), bits)
    for sides in ((smem(layout_of(x)), None), (gmem(layout_of(x)), None), (None, gmem(layout_of(x)))):
        counted = Counted(monkeypatch)
        check(analyse_copy(tiled, *sides), counted.run(tiled, *sides, x), counted)
        monkeypatch.undo()


@pytest.mark.parametrize("name", SMEM_16)
@pytest.mark.parametrize("width", [32, 64, 128])
def test_cp_async(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    atom = CopyAtom(copy_by_name(f"SM80_CP_ASYNC_CACHEALWAYS<uint{width}_t>"), TYPES[16])
    tiled = make_tiled_copy_tv(atom, ROWS, make_layout((1, 8), stride=(0, 1)))
    x = array((64, 64), 16, pitch=88)
    sides = gmem(layout_of(x)), smem(SMEM_16[name])
    report = analyse_copy(tiled, *sides)
    check(report, counted.run(tiled, *sides, x), counted)
    assert report.registers == 0


MMA = make_tiled_mma(
    cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)),
    make_layout((2, 2, 1)),
    permutation_mnk=(32, 32, 16),
)


@pytest.mark.parametrize("name", SMEM_16)
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_ldmatrix_and_stmatrix(name: str, matrices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    load = make_tiled_copy_A(CopyAtom(copy_by_name(f"SM75_U32x{matrices}_LDSM_N"), TYPES[16]), MMA)
    sides: tuple[Any, Any] = (smem(SMEM_16[name]), None)
    report = analyse_copy(load, *sides)
    check(report, counted.run(load, *sides, array((64, 64), 16)), counted)
    assert (report.bank_conflicts == 0) == (name in ("padded", "swizzled", "tiled swizzle"))
    store = make_tiled_copy_C(CopyAtom(copy_by_name(f"SM90_U32x{matrices}_STSM_N"), TYPES[16]), MMA)
    sides = (None, smem(SMEM_16[name]))
    check(analyse_copy(store, *sides), counted.run(store, *sides, array((64, 64), 16)), counted)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("pitch", [0, 68, 72])
@pytest.mark.parametrize("memories", ["load", "store", "through"])
def test_automatic_vectors(transposed: bool, pitch: int, memories: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The width that cute.copy finds by itself, and copies between memories through registers."""
    counted = Counted(monkeypatch)
    tiled = make_tiled_copy_tv(CopyAtom(cute.nvgpu.CopyUniversalOp(), TYPES[16]), ROWS, make_layout((4, 8)))
    x = array((64, 64), 16, pitch, transposed)
    sides = {
        "load": (gmem(layout_of(x)), None),
        "store": (None, gmem(layout_of(x))),
        "through": (gmem(layout_of(x)), smem(SMEM_16["padded"])),
    }[memories]
    report = analyse_copy(tiled, *sides)
    check(report, counted.run(tiled, *sides, x), counted)
    assert report.registers == 16


@pytest.mark.parametrize("width", [16, 128])
def test_one_instruction_between_memories(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    tiled = universal(16, width, ROWS, make_layout((1, 8), stride=(0, 1)))
    x = array((64, 64), 16)
    sides = (gmem(layout_of(x)), smem(SMEM_16["naive"]))
    report = analyse_copy(tiled, *sides)
    check(report, counted.run(tiled, *sides, x), counted)
    assert report.registers == 16


def test_a_tensor_of_the_host_is_a_side() -> None:
    x = array((64, 64), 16, pitch=80)
    tiled = universal(16, 128, ROWS, make_layout((1, 8), stride=(0, 1)))
    known = analyse_copy(tiled, from_dlpack(x, assumed_align=16))
    assert known == analyse_copy(tiled, gmem(Layout((64, 64), (80, 1))))
    assert known.source is not None and known.source.efficiency == 1


def test_unknown_strides_are_no_better_aligned_than_they_promise() -> None:
    tiled = universal(16, 128, make_layout((32, 4), stride=(4, 1)), make_layout((1, 8), stride=(0, 1)))

    def side(divisibility: int, **where: int) -> Any:
        layout = Layout((64, 32), (SymbolicInt("k", divisibility=divisibility), 1))
        return analyse_copy(tiled, gmem(layout), where=where)

    whole, half = side(16), side(8)
    assert whole.source.cost == whole.source.ideal and whole.assumed == {"k": 16 * 1025}
    # Every second row of 64 bytes begins in the middle of a sector: it touches three.
    assert (half.source.cost, half.source.ideal) == (5 * 32, 4 * 32)
    assert side(8, k=4096).source.cost == side(8, k=4096).source.ideal and side(8, k=4096).assumed == {}
    with pytest.raises(ArgumentError, match="needs a value for 'k'"):
        side(8, n=1)


def test_a_divisor_that_does_not_allow_the_vector_is_refused_as_by_the_copy() -> None:
    tiled = universal(16, 128, ROWS, make_layout((1, 8), stride=(0, 1)))
    with pytest.raises(ConstraintError, match="16-byte aligned"):
        analyse_copy(tiled, gmem(Layout((64, 64), (SymbolicInt("k", divisibility=4), 1))))
    with pytest.raises(ConstraintError, match="contiguous"):
        analyse_copy(tiled, gmem(Layout((64, 64), (1, 64))))


def test_mistakes() -> None:
    tiled = universal(16, 128, ROWS, make_layout((1, 8), stride=(0, 1)))
    row_major = Layout((64, 64), (64, 1))
    with pytest.raises(ArgumentError, match=r"gmem\(layout\) or smem\(layout\)"):
        analyse_copy(tiled, row_major)
    with pytest.raises(ArgumentError, match="must be memory"):
        analyse_copy(tiled, None, None)
    with pytest.raises(ArgumentError, match="takes a TiledCopy"):
        analyse_copy(CopyAtom(copy_by_name("UniversalCopy<uint32_t>"), TYPES[16]), gmem(row_major))
    with pytest.raises(ConstraintError, match="do not divide"):
        analyse_copy(tiled, gmem(Layout((60, 64), (64, 1))))
    with pytest.raises(ConstraintError, match="only at run time"):
        analyse_copy(tiled, gmem(make_layout((SymbolicInt("m"), 64), stride=(64, 1))))
    shuffle = CopyAtom(copy_by_name("SM50_Shuffle_U32_2x2Trans_XOR1"), TYPES[32])
    with pytest.raises(ConstraintError, match="from registers to registers: only accesses of memory"):
        analyse_copy(make_tiled_copy_tv(shuffle, Layout(32), Layout(2)), None, gmem(Layout(64)))


def test_the_printed_report_names_the_costs() -> None:
    load = make_tiled_copy_A(CopyAtom(copy_by_name("SM75_U32x4_LDSM_N"), TYPES[16]), MMA)
    text = str(analyse_copy(load, SMEM_16["naive"]))
    assert "8 x ldmatrix.x4" in text and "8-way" in text and "registers a thread     32\n" in text, text

    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=100).print(analyse_copy(load, SMEM_16["swizzled"]))
    assert "bank conflicts" in out.getvalue() and "none" in out.getvalue()
