"""What published kernels for Blackwell say: one atom for two types, steps of zero, schedulers that compute while they
are made, a divisor as one value, several warps that issue MMAs, launches whose options are numbers of the run time."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Boolean, Float16, Float32, Int32, cute, pipeline, sim
from tilewright._mlir.dialects import cute_nvgpu, math
from tilewright.cute.nvgpu import CopyUniversalOp, cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError, StagingError
from tilewright.experimental import primitives as prims
from tilewright.testing import per_thread


def test_functions_of_vectors() -> None:
    """On the value of a TensorSSA, of which the result is made a TensorSSA again."""

    def use(t: Any) -> Any:
        x = cute.full(4, Float32(-1.5) * t, Float32)
        made = math.fma(math.absf(x.ir_value()), x.ir_value(), x.ir_value())
        return type(x)(made, x.shape, x.dtype).reduce(cute.ReductionOp.ADD, 0.0, 0)

    assert per_thread(use, 3, dtype=Float32) == [4 * (1.5 * t * -1.5 * t - 1.5 * t) for t in range(3)]
    with pytest.raises(ConstraintError, match="absf: a float is needed, not Int32"):
        per_thread(lambda t: math.absf(cute.full(4, t, Int32).ir_value()), 1)


def test_an_atom_without_a_width_copies_elements_of_any() -> None:
    """One element, also with a predicate; an atom with a width is of its type."""

    def use(t: Any, width: int = 0) -> Any:
        atom = cute.make_copy_atom(CopyUniversalOp(), Float32, num_bits_per_copy=width)
        held, given = cute.make_rmem_tensor((1, 4), Float16), cute.make_rmem_tensor((1, 4), Float16)
        given.store(cute.full((1, 4), 2.0, Float16) + t)
        held.fill(0)
        cute.copy(atom, given, held)
        kept = cute.make_rmem_tensor((1, 4), cutlass.Boolean)
        kept.fill(t > 1)
        given.fill(10)
        cute.copy(atom, given, held, pred=kept)
        return Float32(held[0, 3])

    assert per_thread(use, 3, dtype=Float32) == [2, 3, 10]
    with pytest.raises(ConstraintError, match="was made for elements of f32"):
        per_thread(partial(use, width=32), 1, dtype=Float32)


def test_a_vector_beside_a_matrix() -> None:
    """A vector is a tensor of one mode: it is repeated along the others."""

    def use(t: Any) -> Any:
        rows, x = cute.make_rmem_tensor(4, Float32), cute.full((4, 2), 1.0, Float32) + t
        for i in cutlass.range_constexpr(4):
            rows[i] = Float32(i)
        return (x - rows.load())[3, 1] * 10 + (rows.load() - x)[2, 0]

    assert per_thread(use, 2, dtype=Float32) == [-20 + 1, -10 + 0]


@cute.jit
def turns(start: Any, stop: Any, step: Any) -> Any:
    n = Int32(0)
    for _ in cutlass.range(start, stop, step):
        n += 1
    return n


def test_a_range_without_iterations_may_have_a_step_of_zero() -> None:
    assert per_thread(lambda t: turns(t, 0, t), 2) == per_thread(lambda t: turns(t + 3, t, t % 2), 2) == [0, 0]
    assert per_thread(lambda t: turns(0, 4 - t, t + 1), 3) == [4, 2, 1]
    with pytest.raises(SimulationError, match="a step of zero never ends"):
        per_thread(lambda t: turns(0, 2, t), 2)


class Scheduler:
    """Computes while it is made, also where a region makes it again."""

    def __init__(self, at: Any, end: Any, grid: Any) -> None:
        self.at, self.end, self.step = at, end, cute.size(grid)
        self.grid = grid

    def work(self) -> Work:
        return Work((self.at, 0, (self.at + 1, self.end)), self.at < self.end)

    def advance(self) -> None:
        self.at += self.step

    def __extract_mlir_values__(self) -> list[Any]:
        return [v for x in (self.at, self.end, self.grid) for v in cutlass.extract_mlir_values(x)]

    def __new_from_mlir_values__(self, values: list[Any]) -> Scheduler:
        parts = ((self.at, values[:1]), (self.end, values[1:2]), (self.grid, values[2:]))
        return Scheduler(*(cutlass.new_from_mlir_values(*part) for part in parts))


class Work:
    """A tile: values that never change in place, so a region may leave a third object where one of two has a name."""

    def __init__(self, tile: Any, is_valid: Any) -> None:
        self.tile, self.is_valid = tile, Boolean(is_valid)

    def __extract_mlir_values__(self) -> list[Any]:
        return [*cutlass.extract_mlir_values(self.tile), *cutlass.extract_mlir_values(self.is_valid)]

    def __new_from_mlir_values__(self, values: list[Any]) -> Work:
        tile = cutlass.new_from_mlir_values(self.tile, values[:-1])
        return Work(tile, cutlass.new_from_mlir_values(self.is_valid, values[-1:]))


class Marked(Work):
    """It changes itself, so it matters which of two objects a name holds."""

    def mark(self) -> None:
        self.is_valid = Boolean(False)


@cute.kernel
def by_roles(out: cute.Tensor, end: Int32, kind: cutlass.Constexpr) -> None:
    """Two warps walk over the tiles, each with a scheduler of its own; the second one's work is in a partial, too."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.warp_idx()
    tiles = Scheduler(cute.arch.block_idx()[0], end, cute.arch.grid_dim())
    work = kind(tiles.work().tile, tiles.work().is_valid)
    named = partial(sum_of, tiles=tiles, first=work)
    if warp == 0:
        while work.is_valid:
            out[t] += work.tile[0] * 10 + work.tile[1]
            tiles.advance()
            work = kind(tiles.work().tile, tiles.work().is_valid)
    if warp == 1:
        while work.is_valid:
            out[t] += work.tile[2][0]
            tiles.advance()
            work = kind(tiles.work().tile, tiles.work().is_valid)
    if warp == 2:
        mine = Scheduler(cute.arch.block_idx()[0], end, cute.arch.grid_dim())
        while mine.at < mine.end:
            out[t] += 100
            mine.advance()
    if warp == 3:
        mine = Scheduler(cute.arch.block_idx()[0] + 1, end, cute.arch.grid_dim())
        while mine.at < mine.end:
            out[t] += mine.at
            mine.advance()
        out[t] += named()


def sum_of(tiles: Any, first: Any) -> Any:
    return 1000 * tiles.at + first.tile[0]


@cute.jit
def with_roles(out: cute.Tensor, end: Int32, kind: cutlass.Constexpr) -> None:
    by_roles(out, end, kind).launch(grid=(1, 1, 1), block=(128, 1, 1))


def test_work_that_has_another_name() -> None:
    out = np.zeros(128, np.int32)
    with_roles(out, 4, Work)
    assert out.reshape(4, 32)[:, 5].tolist() == [60, 10, 400, 1 + 2 + 3]
    with pytest.raises(cutlass.errors.StagingError, match="'work' has no value here: it is one of two objects"):
        with_roles(out, 4, Marked)


def test_a_divisor_as_one_value() -> None:
    """Programs take the values of several objects apart by hand, and count one for a divisor."""
    numbers = (1, 2, 3, 5, 64, 65, 1000, 2**30 + 1, 2**31 - 1)

    def use(t: Any) -> Any:
        wrong = Int32(0)
        for number in numbers:
            for power in (False, True):
                if not power or number & (number - 1) == 0:
                    given = cute.FastDivmodDivisor(Int32(number) + t, power)
                    (value,) = cutlass.extract_mlir_values(given)
                    again = cutlass.new_from_mlir_values(given, (value,))
                    for x in (0, number - 1, number, 2**31 - 1):
                        q, r = divmod(Int32(x), again)
                        wrong += Int32(q != x // number) + Int32(r != x % number)
        return wrong

    assert per_thread(use, 1) == [0]


def test_two_warps_that_issue_mmas() -> None:
    def make(t: Any, commits: Any) -> Any:
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, commits)
        made = pipeline.PipelineTmaUmma.create(num_stages=2, tx_count=16, consumer_group=group)
        producer, consumer = made.make_participants()
        assert producer._PipelineProducer__state is producer._state
        assert consumer._PipelineConsumer__state is consumer._state
        return Int32(made.sync_object_empty.group.size)

    assert per_thread(partial(make, commits=2), 64)[0] == 2
    with pytest.raises(ConstraintError, match="one warp issues the MMAs, and its commit is one arrival"):
        per_thread(partial(make, commits=32), 32)


def test_addresses_of_shared_memory_in_a_kernel() -> None:
    """Tensors that only have a shape, as tiled copies are made for them."""

    def use(t: Any) -> Any:
        none = cute.make_tensor(cute.make_ptr(Float16, 0, cute.AddressSpace.smem), cute.make_layout((8, 4)))
        return Int32(cute.size(cute.local_tile(none, (2, 2), (t, t)).layout))

    assert per_thread(use, 2) == [4, 4]


@cute.kernel
def ranks(out: cute.Tensor) -> None:
    cute.arch.griddepcontrol_wait()
    x, _, _ = cute.arch.block_idx()
    out[x] += 10 * cute.arch.cluster_size() + cute.arch.block_idx_in_cluster()


@cute.jit
def launched(out: cute.Tensor, n: Int32, early: Boolean) -> None:
    ranks(out).launch(grid=(4, 1, 1), block=(32, 1, 1), cluster=(n, 1, 1), use_pdl=early)


def test_clusters_and_dependent_launches_of_the_run_time() -> None:
    out = np.zeros(4, np.int32)
    compiled = cute.compile(launched, out, 1, False)
    (kernel,) = compiled.kernels
    for n, early in ((1, False), (2, True), (4, True)):
        out[:] = 0
        with sim.options(check="none"):  # 32 threads write one number
            compiled(out, n, early)
        assert out.tolist() == [10 * n + x % n for x in range(4)]
    with pytest.raises(SimulationError, match=r"not divisible by the cluster \(3, 1, 1\)"):
        compiled(out, 3, False)
    assert "__cluster_dims__" not in cutlass.cuda.emit(kernel, "sm_90a").text


@cute.kernel
def freed_by_all(out: cute.Tensor, waste: cutlass.Constexpr) -> None:
    """Each warp frees the columns, as some published epilogues do."""
    t, _, _ = cute.arch.thread_idx()
    cute.arch.alloc_smem(cutlass.Uint8, waste)
    holder = cute.arch.alloc_smem(Int32, 1)
    if cute.arch.warp_idx() == 0:
        cute.arch.alloc_tmem(64, holder)
    cute.arch.sync_threads()
    base = cute.arch.retrieve_tmem_ptr(Float32, 16, holder)
    cute.arch.sync_threads()
    cute.arch.dealloc_tmem(base, 64)
    out[t] = t


@pytest.mark.parametrize("check", ["default", "all", "default,-tensor-memory"])
@pytest.mark.parametrize("waste", [64, 150_000])
def test_columns_that_each_warp_frees(check: str, waste: int) -> None:
    """It takes columns away from another block of the multiprocessor, if there can be one."""

    @cute.jit
    def host(out: cute.Tensor) -> None:
        freed_by_all(out, waste).launch(grid=(2, 1, 1), block=(128, 1, 1))

    out = np.zeros(256, np.int32)
    with sim.options(check=check):
        if check == "all" or (check == "default" and waste == 64):
            with pytest.raises(SimulationError, match="tcgen05.dealloc of 64 columns at 0x0, which are not allocated"):
                host(out)
        else:
            host(out)


@cute.kernel
def paged(load: cute.CopyAtom, pages: cute.Tensor, table: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    full = cute.arch.alloc_smem(cutlass.Int64, 1, 8)
    rows = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((8, 32), stride=(32, 1)), 128)
    with cute.arch.elect_one():
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    tiles = cute.local_tile(pages, (4, 32), (0, 0, None))  # (rows of a page, columns, page)
    halves = cute.flat_divide(rows, (4, 32))[None, None, None, 0]
    to, come = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(halves, 0, 2), cute.group_modes(tiles, 0, 2)
    )
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(full, 8 * 32 * 4)
    for i in cutlass.range_constexpr(2):
        cute.copy(load, come[None, table[i]], to[None, i], tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    for row in cutlass.range_constexpr(8):
        out[row, t] = rows[row, t]


@cute.jit
def from_pages(pages: cute.Tensor, table: cute.Tensor, out: cute.Tensor) -> None:
    op = cpasync.CopyBulkTensorTileG2SOp()
    tile = cute.composition(cute.make_identity_layout(pages.shape), (4, 32))
    smem = cute.make_composed_layout(cute.make_swizzle(0, 4, 3), 0, cute.make_layout((4, 32), stride=(32, 1)))
    made = cute_nvgpu.atom_make_non_exec_tiled_tma_load(pages.value, smem.value, tile, op._to_ir(), num_multicast=1)
    atom = cute.CopyAtom(op, cpasync.CopyBulkTensorTileG2SNonExecTrait(made[0]))
    assert type(atom) is type(made[0]) and atom == made[0]
    paged(atom, made[1], table, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_tiles_by_a_layout_of_ones_own() -> None:
    pages = np.arange(3 * 4 * 32, dtype=np.float32).reshape(3, 4, 32)
    table, out = np.array([2, 0], np.int32), np.zeros((8, 32), np.float32)
    from_pages(from_dlpack(pages.transpose(1, 2, 0), assumed_align=16), table, out)
    np.testing.assert_array_equal(out.reshape(2, 4, 32), pages[[2, 0]])
    with pytest.raises(ConstraintError, match="takes a tensor and a layout of shared memory"):
        cute_nvgpu.atom_make_non_exec_tiled_tma_load(1, 2, 3, tcgen05.CtaGroup.ONE)


def test_vectors_by_a_pointer() -> None:
    """Of shared memory, under a swizzle, and of registers, whose pointer is the array itself."""

    def use(t: Any) -> Any:
        base = cute.arch.alloc_smem(Float16, 512, 1024)
        given = cutlass.Vector.from_elements(tuple(Float16(i) for i in range(32)), Float16)
        swizzle = cutlass.Swizzle.from_name("s128b")
        (base + 64 * 3).store_swizzled(given, alignment=64, swizzle=swizzle)  # the fourth row of 128 bytes
        found = Float32(0)
        for i in range(32):
            found += Float32(base.load(64 * 3 + ((i // 8) ^ 3) * 8 + i % 8) != i)
        again = (base + 64 * 3).load_swizzled(swizzle, 16, count=32)
        plain = base.load(64 * 3 + 24, count=4, alignment=8)  # the first chunk of eight is there
        kept = cutlass.Array(Float16, 8)
        kept.data_ptr(2).store(plain, alignment=4)
        base.store(kept.data_ptr().load(count=8, alignment=4), 0, alignment=16)
        return found * 1000 + Float32(again[9]) * 10 + Float32(base.load(4))

    assert per_thread(use, 1, dtype=Float32) == [9 * 10 + 2]


def test_extremes_that_flush_and_places_of_tensor_memory() -> None:
    small = 2.0**-130
    assert per_thread(lambda t: cute.math.max(Float32(small) * (t + 1), Float32(-1.0), ftz=True), 1, dtype=Float32) == [
        0
    ]

    def least(t: Any) -> Any:
        return cute.math.min(cute.full(2, Float32(-small) - t, Float32), 1.0, ftz=True)[1]

    found = per_thread(least, 2, dtype=Float32)
    assert found == [0, -1] and np.signbit(found[0])
    with pytest.raises(ConstraintError, match="ftz=True flushes subnormal numbers of Float32; this is a Int32"):
        per_thread(lambda t: cute.math.min(t, t, t, ftz=True), 1)
    assert per_thread(lambda t: prims.make_tmem_ptr(t, cutlass.Int8).subview(8).toint(), 2) == [8, 9]
    with pytest.raises(ConstraintError, match="a pointer to bytes moves by columns"):
        per_thread(lambda t: prims.make_tmem_ptr(t, Int32).subview(8).toint(), 2)


def test_modules_that_are_only_asked_for() -> None:
    from tilewright import compat

    compat.install()
    try:
        find = importlib.util.find_spec
        assert find("cutlass.utils.nothing") is None and find("cutlass.utils") is not None
        with pytest.raises(ModuleNotFoundError, match=r"there is no module 'cutlass.utils.nothing'"):
            importlib.import_module("cutlass.utils.nothing")
    finally:
        compat.uninstall()


@cute.kernel
def bytes_of_rows(load: cute.CopyAtom, x: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    full = cute.arch.alloc_smem(cutlass.Int64, 1, 8)
    held = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Uint8, cute.make_layout((4, 4, 8)), 128)
    with cute.arch.elect_one():
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    tile = cute.group_modes(cute.local_tile(x, (4, 4, 8), (0, 0, None)), 0, 3)
    to, come = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(held, 0, 3), tile)
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(full, 128)
    cute.copy(load, come[None, 1], to, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    for i in cutlass.range_constexpr(4):
        out[i, t] = held[i, t % 4, t // 4]


@pytest.mark.parametrize("internal", [None, cutlass.Int16, cutlass.Uint64])
def test_rows_of_four_bytes_copied_as_a_type_of_eight(internal: Any) -> None:
    """The same bytes by a narrower type: factors are copied so."""

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        op = cpasync.CopyBulkTensorTileG2SOp()
        load, tensor = cpasync.make_tiled_tma_atom(
            op, x, cute.make_layout((4, 4, 8)), (4, 4, 8), internal_type=internal
        )
        bytes_of_rows(load, tensor, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x, out = np.arange(256, dtype=np.uint8).reshape(16, 4, 4), np.zeros((4, 32), np.uint8)
    host(from_dlpack(x.transpose(2, 1, 0), assumed_align=16), out)
    np.testing.assert_array_equal(out.T.reshape(-1), np.arange(128, 256))


def test_warps_end_by_the_operation_that_cute_arch_imports() -> None:
    """cuDNN's grouped GEMMs end blocks without tokens by ``cute.arch.nvvm.exit()``."""

    @cute.jit
    def first_warp(t: Any, p: Any) -> Any:
        if t >= 32:
            cute.arch.nvvm.exit()
        cute.arch.sync_threads()
        cute.arch.store(p + t, cutlass.Int32(7))
        return t

    assert per_thread(first_warp, 64, memory=[0] * 64)[1][31:33] == [7, 0]


class _Extension:
    """As cuDNN's extensions of a scheduler of groups: no values of its own, and a note of the group at hand."""

    def __extract_mlir_values__(self) -> list[Any]:
        return []

    def __new_from_mlir_values__(self, values: list[Any]) -> _Extension:
        return _Extension()

    def update(self, group: Any) -> None:
        self.offset = group * 10

    def get(self, group: Any) -> Any:
        return self.offset + 1 if cutlass.const_expr(hasattr(self, "offset")) else group * 10 + 2


class _Kept(_Extension):
    def __new_from_mlir_values__(self, values: list[Any]) -> _Extension:
        return self


@cute.kernel
def _groups(x: cute.Tensor, kind: cutlass.Constexpr) -> None:
    extension, group = kind(), Int32(x[0])
    while group < 3:
        extension.update(group)
        x[group] = extension.get(group)
        group += 1
    if x[4] == 0:
        extension.update(group)
        x[3] = extension.get(group)
    x[4] = extension.get(group)


@cute.jit
def _all_groups(x: cute.Tensor, kind: cutlass.Constexpr) -> None:
    _groups(x, kind).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_attributes_that_a_region_adds_to_an_object_of_values_end_with_it() -> None:
    """Past a region, the protocol has the program make the object again, without them."""
    x = np.zeros(5, np.int32)
    _all_groups(from_dlpack(x), _Extension)
    assert list(x) == [1, 11, 21, 31, 32]


def test_attributes_that_an_object_of_values_keeps_may_not_come_in_a_region() -> None:
    with pytest.raises(StagingError, match="'extension' changes its attributes in the run-time while loop"):
        _all_groups(from_dlpack(np.zeros(5, np.int32)), _Kept)
