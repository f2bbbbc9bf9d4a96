"""Tensor memory of a block: one warp allocates and frees it, the others are told where it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilewright.atoms.tensor_memory import COLUMNS, tmem_columns
from tilewright.atoms.tensor_memory_alloc import LEAST, allocatable
from tilewright.cute.arch.tensor_memory import get_max_tmem_alloc_cols
from tilewright.cute.nvgpu.tcgen05 import find_tmem_tensor_col_offset
from tilewright.errors import ConstraintError
from tilewright.lang.device import mbarriers
from tilewright.lang.device import tensor_memory as device
from tilewright.lang.device.smem import SmemAllocator, SmemPartition
from tilewright.lang.device.threads import WARP_SIZE, block_idx_in_cluster, warp_idx
from tilewright.lang.device.warps import elect_one, make_warp_uniform
from tilewright.lang.launch.jit import jit
from tilewright.lang.numbers.numeric import Float32, Int32, Int64
from tilewright.lang.numbers.numeric_class import numeric_type
from tilewright.lang.staging.generate import if_generate
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, is_static


class TmemAllocator:
    """Allocates tensor memory by one warp of the block, for the warps that meet at a barrier.

    All warps that meet at ``barrier_for_retrieve`` (a ``pipeline.NamedBarrier``) call ``allocate``, ``wait_for_alloc``,
    ``retrieve_ptr`` and at the end ``free``; only warp ``allocator_warp_id`` executes the instructions. The address is
    written to ``alloc_result_dst_smem_ptr``, a pointer to an Int32 in shared memory; without one the object takes its
    own. Before ``free`` the warps meet, so that all have done their last access.

    ``is_two_cta``: both blocks of a pair do all this, and get the same columns; neither frees them before the other has
    come to ``free``. For that they meet at the mbarrier ``two_cta_tmem_dealloc_mbar_ptr`` (an Int64 in shared memory,
    its own without one), which ``initialize_mbarrier=False`` leaves to the caller, for the 32 threads of a warp. A
    synchronisation of the cluster lies between the constructor and ``free``.

    Raises ConstraintError for columns that cannot be allocated, and more than 512 in all.

    Each thread writes its number to a row of tensor memory, 8 columns, and reads it back:

    >>> from tilewright import Float32, Int32, pipeline
    >>> from tilewright.cute.nvgpu import tcgen05
    >>> @cute.jit
    ... def kept(t):
    ...     barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
    ...     tmem = TmemAllocator(cute.arch.alloc_smem(Int32, 1), barrier)
    ...     tmem.allocate(32)
    ...     tmem.wait_for_alloc()
    ...     base = tmem.retrieve_ptr(Float32)
    ...     memory = cute.make_tensor(base, cute.make_layout((128, 8), stride=(65536, 1)))
    ...     wide = tcgen05.Repetition.x8
    ...     put, get = (
    ...         tcgen05.make_tmem_copy(cute.make_copy_atom(op(wide), Float32), memory)
    ...         for op in (tcgen05.St32x32bOp, tcgen05.Ld32x32bOp)
    ...     )
    ...     registers = cute.make_rmem_tensor(8, Float32)
    ...     registers.fill(Float32(t))
    ...     row = put.get_slice(t).partition_D(memory)
    ...     held = cute.make_tensor(registers.iterator, cute.make_layout(get.get_slice(t).partition_D(memory).shape))
    ...     cute.copy(put, held, row)
    ...     cute.arch.fence_view_async_tmem_store()
    ...     held.fill(Float32(0))
    ...     cute.copy(get, get.get_slice(t).partition_S(memory), held)
    ...     cute.arch.fence_view_async_tmem_load()
    ...     barrier.arrive_and_wait()
    ...     tmem.free(base)
    ...     return held[0]
    >>> per_thread(kept, 128)[5:7]
    [5, 6]
    """

    def __init__(
        self,
        alloc_result_dst_smem_ptr: Any = None,
        barrier_for_retrieve: Any = None,
        allocator_warp_id: int = 0,
        is_two_cta: bool = False,
        num_allocated_columns: int = 0,
        two_cta_tmem_dealloc_mbar_ptr: Any = None,
        *,
        arch: str = "sm_100",
        initialize_mbarrier: bool = True,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        get_max_tmem_alloc_cols(arch)  # refuses architectures without tensor memory
        if barrier_for_retrieve is None:
            raise ConstraintError(
                "TmemAllocator: give barrier_for_retrieve, a pipeline.NamedBarrier of the warps that use the columns"
            )
        reserved = functools.partial(SmemAllocator().allocate_array, partition=SmemPartition.RESERVED)
        self._pair, self._freed, self._frees = bool(is_two_cta), two_cta_tmem_dealloc_mbar_ptr, 0
        if self._pair and self._freed is None:
            self._freed = reserved(Int64)
        if self._pair and initialize_mbarrier:
            _make_meeting(allocator_warp_id, self._freed)
        self._holder = reserved(Int32) if alloc_result_dst_smem_ptr is None else alloc_result_dst_smem_ptr
        self._barrier = barrier_for_retrieve
        self._warp = allocator_warp_id
        self._columns = num_allocated_columns

    def check_valid_num_columns(self, num_columns: int) -> bool:
        """Whether this number of columns can be allocated beside those that this object has allocated."""
        return allocatable(num_columns) and num_columns + self._columns <= COLUMNS

    def allocate(
        self, num_columns: int | None = None, *, num_cols: int | None = None, loc: Any = None, ip: Any = None
    ) -> None:
        """Allocate columns, by the allocating warp; the guide to tcgen05 calls their number ``num_cols``."""
        counts = [count for count in (num_columns, num_cols) if count is not None]
        if len(counts) != 1:
            raise ConstraintError("TmemAllocator.allocate takes the number of columns once")
        self._allocate(counts[0])

    def _allocate(self, num_columns: int) -> None:
        if not self.check_valid_num_columns(num_columns):
            raise ConstraintError(
                f"TmemAllocator: {num_columns} columns beside {self._columns} cannot be allocated: the number is a "
                f"power of two from {LEAST} on, and there are {COLUMNS}"
            )
        self._by_its_warp(lambda: device.alloc_tmem(num_columns, self._holder, self._pair))
        self._columns += num_columns

    def wait_for_alloc(self, *, loc: Any = None, ip: Any = None) -> None:
        """Meet at the barrier: the address has been written."""
        self._barrier.arrive_and_wait()

    def retrieve_ptr(self, dtype: Any = Float32, *, loc: Any = None, ip: Any = None) -> TensorMemory:
        """The address of the columns, for elements of ``dtype``."""
        return device.retrieve_tmem_ptr(dtype, 16, self._holder)

    def reserve(self, num_columns: int, *, loc: Any = None, ip: Any = None) -> TmemBufferPool:
        """``allocate``, ``wait_for_alloc`` and ``retrieve_ptr`` in one: columns from which tensors are taken one after
        another."""
        self._allocate(num_columns)
        self.wait_for_alloc()
        return TmemBufferPool(self.retrieve_ptr(), num_columns)

    def relinquish_alloc_permit(self, *, loc: Any = None, ip: Any = None) -> None:
        """Say that this block allocates no more, so that other blocks of the multiprocessor can."""
        self._by_its_warp(lambda: device.relinquish_tmem_alloc_permit(self._pair))

    def free(self, tmem_ptr: TensorMemory, num_columns: int = 0, *, loc: Any = None, ip: Any = None) -> None:
        """Free ``num_columns`` columns (0: all that were allocated) at an address, by the allocating warp."""
        count = num_columns or self._columns
        if not count:
            raise ConstraintError("TmemAllocator.free: nothing is allocated: call allocate(num_columns) before it")
        parity = self._frees & 1

        def release() -> None:
            if self._pair:
                mbarriers.mbarrier_arrive(self._freed, block_idx_in_cluster() ^ 1)
                mbarriers.mbarrier_wait(self._freed, parity)
            device.dealloc_tmem(tmem_ptr, count, self._pair)

        self._by_its_warp(release)
        self._frees += 1
        self._columns -= count

    def _by_its_warp(self, act: Callable[[], None]) -> None:
        """Let the allocating warp act: not in a function of the language, so that its operations are at the line of the
        program that calls the method."""
        if_generate(make_warp_uniform(warp_idx()) == self._warp, act)


class TmemBufferPool:
    """``total_cols`` columns of tensor memory at ``base_ptr``, given away one part after another.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def third(t):
    ...     pool = TmemBufferPool(cute.make_ptr(Int32, 0, cute.AddressSpace.tmem), 512)
    ...     sums = pool.allocate_tensor(cute.make_layout((128, 96), stride=(65536, 1)), Float32)
    ...     factors = pool.allocate(4, Int32)
    ...     return pool.allocate(1, Int32).toint() + 1000 * pool.remaining_cols
    >>> per_thread(third, 1)
    [411100]
    """

    def __init__(self, base_ptr: TensorMemory, total_cols: int) -> None:
        if not isinstance(base_ptr, TensorMemory):
            raise ConstraintError(f"TmemBufferPool: base_ptr is a pointer to tensor memory, not {base_ptr}")
        self._base, self._total, self._used = base_ptr.with_dtype(Int32), total_cols, 0

    base_ptr = property(lambda self: self._base)
    total_cols = property(lambda self: self._total)
    current_offset = property(lambda self: self._used)
    remaining_cols = property(lambda self: self._total - self._used)

    def allocate(self, size: Any, dtype: Any, *, loc: Any = None, ip: Any = None) -> TensorMemory:
        """A pointer to the next columns, for elements of ``dtype``: ``size`` columns, or what a layout of such elements
        takes. ConstraintError where fewer are left."""
        columns = size if isinstance(size, int) else compute_tmem_cols_from_layout(size, dtype)
        if not 0 < columns <= self.remaining_cols:
            raise ConstraintError(
                f"TmemBufferPool: {columns} columns for {size}, but {self.remaining_cols} of {self._total} are left"
            )
        place = (self._base + self._used).with_dtype(dtype)
        self._used += columns
        return place

    def allocate_tensor(self, layout: Layout, dtype: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """A tensor of the next columns that ``layout`` takes."""
        return make_tensor(self.allocate(layout, dtype), layout)


@jit
def _make_meeting(warp: int, mbarrier: Any) -> None:
    """All threads of the other block's warp arrive there before this one frees."""
    if make_warp_uniform(warp_idx()) == warp:
        with elect_one():
            mbarriers.mbarrier_init(mbarrier, WARP_SIZE)
            mbarriers.mbarrier_init_fence()


def compute_tmem_cols_from_layout(layout: Layout, dtype: Any, *, loc: Any = None, ip: Any = None) -> int:
    """The columns that a static layout of tensor memory takes with elements of ``dtype``.

    >>> from tilewright import Float16, Float32
    >>> from tilewright.layout import make_layout
    >>> compute_tmem_cols_from_layout(make_layout((128, 64), stride=(65536, 1)), Float32)
    64
    >>> compute_tmem_cols_from_layout(make_layout((128, 64), stride=(2 * 65536, 1)), Float16)
    32
    """
    if not isinstance(layout, Layout) or not is_static(layout):
        raise ConstraintError(f"compute_tmem_cols_from_layout takes a static layout, not {layout}")
    return tmem_columns(layout, numeric_type("compute_tmem_cols_from_layout", dtype).width)


def get_num_tmem_alloc_cols(
    tmem_tensors: Any, rounding: bool = True, *, arch: str = "sm_100", loc: Any = None, ip: Any = None
) -> int:
    """The columns that tensors of tensor memory (one, or a list) take together; with ``rounding`` the power of two from
    32 on that can be allocated for them.

    ConstraintError for other tensors, and where 512 columns do not suffice.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def columns(t):
    ...     base = cute.arch.retrieve_tmem_ptr(Float32, 16, held_by(t))
    ...     memory = cute.make_tensor(base, cute.make_layout((128, 40), stride=(65536, 1)))
    ...     return get_num_tmem_alloc_cols(memory), get_num_tmem_alloc_cols(memory, rounding=False)
    >>> @cute.jit
    ... def held_by(t):
    ...     held = cute.arch.alloc_smem(Int32, 1)
    ...     held.store(Int32(0))
    ...     return held
    >>> per_thread(lambda t: columns(t)[0], 32)[0], per_thread(lambda t: columns(t)[1], 32)[0]
    (64, 40)
    """
    tensors = [tmem_tensors] if isinstance(tmem_tensors, Tensor) else list(tmem_tensors)
    columns = sum(find_tmem_tensor_col_offset(tensor) for tensor in tensors)
    count = max(LEAST, 1 << (columns - 1).bit_length()) if rounding else columns
    if count > COLUMNS:
        raise ConstraintError(f"get_num_tmem_alloc_cols: {columns} columns are needed, and there are {COLUMNS}")
    return count
