"""Asynchronous copies between global and shared memory: ``cp.async``, bulk copies and TMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright._names import attach
from tilewright.atoms.bulk_copy import BulkCopy, BulkLoad, BulkStore
from tilewright.atoms.cp_async import CpAsync, LoadCacheMode
from tilewright.atoms.tma import TmaLoad, TmaStore
from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError
from tilewright.ir.types import ScalarType
from tilewright.lang.tensors.tensor_ssa import ReductionOp
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.dsmem_store import DsmemStoreAtom
from tilewright.tiled.tma.atom import TmaInfo, make_tiled_tma_atom
from tilewright.tiled.tma.bulk import BulkCopyAtom
from tilewright.tiled.tma.descriptors import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    prefetch_descriptor,
    update_tma_descriptor,
)
from tilewright.tiled.tma.partition import create_tma_multicast_mask, tma_partition

__all__ = [
    "CopyBulkG2SMulticastOp",
    "CopyBulkG2SOp",
    "CopyBulkS2GOp",
    "CopyBulkTensorTileG2SMulticastNonExecTrait",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SNonExecTrait",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyDsmemStoreOp",
    "CopyG2SOp",
    "CopyReduceBulkS2GOp",
    "CopyReduceBulkTensorTileS2GOp",
    "LoadCacheMode",
    "ReductionKind",
    "TmaInfo",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]

ReductionKind = ReductionOp


@dataclass(frozen=True)
class CopyG2SOp:
    """``cp.async`` of 4, 8 or 16 bytes; with a predicate, false writes zeros (the instruction's source size is then 0).

    ``cache_mode`` GLOBAL bypasses L1 and needs 16 bytes.

    >>> from tilewright.ir.types import F16
    >>> CopyG2SOp(LoadCacheMode.GLOBAL).copy_instruction(F16, 128)
    SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> CpAsync:
        return CpAsync(num_bits or max(32, value_type.width), self.cache_mode, zero_fill=True)


@dataclass(frozen=True)
class _BulkTensorOp:
    """What the TMA operations share: the instruction is made with the box, by ``make_tiled_tma_atom``."""

    multicast: ClassVar[bool] = False

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> Any:
        raise ConstraintError(f"{type(self).__name__} needs a tensor map: make the atom with make_tiled_tma_atom")

    def tma_instruction(self, bits: int, rank: int) -> TmaLoad | TmaStore:
        raise NotImplementedError

    def _to_ir(self, *, loc: Any = None, ip: Any = None) -> Any:
        """What ``cutlass._mlir.dialects.cute_nvgpu`` takes: the operation itself."""
        return self


@dataclass(frozen=True)
class CopyBulkTensorTileG2SOp(_BulkTensorOp):
    """TMA load: boxes of a tensor to shared memory; their bytes complete transactions of an mbarrier.

    The whole warp calls ``cute.copy(atom, src, dst, tma_bar_ptr=...)``, which elects the thread that issues.
    ``cta_group`` ``tcgen05.CtaGroup.TWO`` (sm_100a): a part of an operand of a pair of blocks, whose bytes count at the
    mbarrier of the block of even rank.
    """

    cta_group: Any = 1

    def __post_init__(self) -> None:
        if getattr(self.cta_group, "value", self.cta_group) not in (1, 2):
            raise ConstraintError(f"{type(self).__name__}: cta_group={self.cta_group!r}; it is CtaGroup.ONE or TWO")

    def tma_instruction(self, bits: int, rank: int) -> TmaLoad:
        pair = getattr(self.cta_group, "value", self.cta_group) == 2
        return TmaLoad(bits, rank, multicast=self.multicast, pair=pair)


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp(CopyBulkTensorTileG2SOp):
    """TMA load into the same place of several blocks of the cluster (``mcast_mask``); each block loads a part."""

    multicast: ClassVar[bool] = True


@dataclass(frozen=True)
class CopyBulkTensorTileG2SNonExecTrait:
    """What ``cute.CopyAtom(op, trait)`` makes an atom of: the one of ``atom_make_non_exec_tiled_tma_load``.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> op, seen = CopyBulkTensorTileG2SOp(), []
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     atom, _ = make_tiled_tma_atom(op, x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8))
    ...     seen.append(cute.CopyAtom(op, CopyBulkTensorTileG2SNonExecTrait(atom)) == atom)
    >>> run(from_dlpack(np.zeros((8, 8), np.float32), assumed_align=16))
    >>> seen
    [True]
    """

    value: CopyAtom


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastNonExecTrait(CopyBulkTensorTileG2SNonExecTrait):
    """The same of a load into several blocks.

    >>> issubclass(CopyBulkTensorTileG2SMulticastNonExecTrait, CopyBulkTensorTileG2SNonExecTrait)
    True
    """


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp(_BulkTensorOp):
    """TMA store: boxes of shared memory to a tensor, in bulk groups (``cute.arch.cp_async_bulk_commit_group``)."""

    def tma_instruction(self, bits: int, rank: int) -> TmaStore:
        return TmaStore(bits, rank)


@dataclass(frozen=True)
class CopyReduceBulkTensorTileS2GOp(_BulkTensorOp):
    """TMA reduction: boxes of shared memory are combined with what the tensor holds, each element atomically.

    ``reduction_kind``: ADD, MIN, MAX, INC, DEC, AND, OR or XOR.
    """

    reduction_kind: Any = ReductionOp.ADD

    def tma_instruction(self, bits: int, rank: int) -> TmaStore:
        kind = getattr(self.reduction_kind, "name", str(self.reduction_kind)).lower()
        return TmaStore(bits, rank, reduction=kind)


attach(__name__)


@dataclass(frozen=True)
class _BulkOp:
    """What the bulk operations share; ``cute.make_copy_atom(op, dtype)`` makes the atom."""

    def copy_atom(self, value_type: Any, num_bits_per_copy: int = 0) -> BulkCopyAtom:
        return BulkCopyAtom(self, value_type, num_bits_per_copy)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> BulkCopy:
        raise NotImplementedError


@dataclass(frozen=True)
class CopyBulkG2SOp(_BulkOp):
    """Contiguous bytes from global to shared memory, without a tensor map; they complete transactions of an mbarrier.

    A warp calls ``cute.copy(atom, src, dst, mbar_ptr=...)``, of which one thread issues the copy; so may one thread
    (``with cute.arch.elect_one():``), or several that have destinations of their own. Addresses and sizes are multiples
    of 16 bytes.
    """

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> BulkLoad:
        return BulkLoad(value_type.width)


@dataclass(frozen=True)
class CopyBulkG2SMulticastOp(_BulkOp):
    """``CopyBulkG2SOp`` into the same place of the blocks of the cluster in ``mcast_mask``."""

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> BulkLoad:
        return BulkLoad(value_type.width, multicast=True)


@dataclass(frozen=True)
class CopyDsmemStoreOp:
    """``st.async``: registers to another block's shared memory. When they are there, their bytes count at an mbarrier
    of that block, which expects them (``cute.arch.mbarrier_arrive_and_expect_tx``).

    ``cute.copy(atom, registers, dst, mbar_ptr=...)``: ``dst`` and ``mbar_ptr`` are at places of the other block, by
    ``cute.arch.map_dsmem_ptr``. Each element of 32 or 64 bits, or word of narrower ones, is a store of its own.
    ``num_bits_per_copy``, 128 at most, says how tiled copies divide a tile.

    >>> from tilewright import Float32, Int64
    >>> def exchange(t):
    ...     own = arch.block_idx_in_cluster()
    ...     buffer, bar = arch.alloc_smem(Float32, 4, 16), arch.alloc_smem(Int64, 1, 8)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     arch.mbarrier_init_fence()
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     values = cute.make_rmem_tensor(4, Float32)
    ...     values.fill(Float32(own) + 0.5)
    ...     atom = cute.make_copy_atom(CopyDsmemStoreOp(), Float32, num_bits_per_copy=128)
    ...     to = cute.make_tensor(arch.map_dsmem_ptr(buffer, own ^ 1), cute.make_layout(4))
    ...     cute.copy(atom, values, to, mbar_ptr=arch.map_dsmem_ptr(bar, own ^ 1))
    ...     arch.mbarrier_wait(bar, 0)  # 16 bytes have come
    ...     return arch.load(buffer + 3)
    >>> per_thread(exchange, 1, blocks=2, cluster=2, dtype=Float32)
    [1.5, 0.5]
    """

    def copy_atom(self, value_type: Any, num_bits_per_copy: int = 0) -> DsmemStoreAtom:
        return DsmemStoreAtom(self, value_type, num_bits_per_copy)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> UniversalCopy:
        if num_bits > 128:
            raise ConstraintError(f"CopyDsmemStoreOp: num_bits_per_copy is 128 at most, not {num_bits}")
        return UniversalCopy(num_bits or value_type.width)


@dataclass(frozen=True)
class CopyBulkS2GOp(_BulkOp):
    """Contiguous bytes from shared to global memory, in bulk groups (``cute.arch.cp_async_bulk_commit_group``), as
    ``CopyBulkG2SOp`` by a warp or one thread; the threads that call it commit and wait, too."""

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> BulkStore:
        return BulkStore(value_type.width)


@dataclass(frozen=True)
class CopyReduceBulkS2GOp(_BulkOp):
    """Contiguous elements of shared memory combined with those in global memory, each atomically, in bulk groups. Each
    thread that calls ``cute.copy`` issues one."""

    reduction_kind: Any = ReductionOp.ADD

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> BulkStore:
        kind = getattr(self.reduction_kind, "name", str(self.reduction_kind)).lower()
        return BulkStore(value_type.width, reduction=kind, element=value_type)
