"""Tensor maps that a kernel keeps in global memory and changes as it goes on to other tensors (grouped GEMM)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.tensormap import BYTES
from tilewright.ir.types import MemSpace, PtrType
from tilewright.lang.device.barriers import fence_acq_rel_cta, sync_warp
from tilewright.lang.device.threads import warp_idx
from tilewright.lang.device.warps import elect_one, make_warp_uniform
from tilewright.lang.numbers.numeric import as_numeric
from tilewright.lang.staging.with_block import only_if
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.tma import descriptors


class TensorMapUpdateMode(Enum):
    """Where a tensor map is changed: in global memory, or in shared memory, from where it is copied."""

    GMEM = 1
    SMEM = 2


@dataclass(frozen=True)
class TensorMapManager:
    """Initialises and changes tensor maps of 128 bytes in global memory.

    A block copies an atom's tensor map to its workspace (``init_tensormap_from_atom``), lets it describe another tensor
    (``update_tensormap``), and copies by it (``cute.copy(..., tma_desc_ptr=...)``) after
    ``fence_tensormap_update``. All methods are called by the whole block or by whole warps.
    """

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int = BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.tensormap_update_mode, TensorMapUpdateMode):
            raise ConstraintError(f"TensorMapManager takes a TensorMapUpdateMode, not {self.tensormap_update_mode!r}")
        if self.bytes_per_tensormap != BYTES:
            raise ConstraintError(f"a tensor map has {BYTES} bytes, not {self.bytes_per_tensormap}")

    def get_tensormap_ptr(
        self, ptr: Pointer, address_space: AddressSpace = AddressSpace.gmem, *, loc: Any = None, ip: Any = None
    ) -> Pointer:
        """``ptr`` to global memory as a pointer to a tensor map, aligned to its 128 bytes: in global memory to change
        it, as a generic address to copy by it."""
        if address_space not in (AddressSpace.gmem, AddressSpace.generic):
            raise ConstraintError(
                f"get_tensormap_ptr: a tensor map that is copied by must be in gmem, not {address_space}"
            )
        value = ptr.value()
        kind = value.type
        assert isinstance(kind, PtrType)
        cast = Builder.current().ptr_cast(value, PtrType(kind.elem, MemSpace(address_space.value), BYTES))
        return Pointer(cast, ptr.dtype)

    def init_tensormap_from_atom(
        self, copy_atom: CopyAtom, dst_ptr: Pointer, warp_id: int, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Warp ``warp_id`` copies the atom's tensor map to ``dst_ptr``, where it will be changed."""
        with _in_warp(warp_id):
            with elect_one():
                descriptors.copy_tensormap(copy_atom, dst_ptr)
            sync_warp()

    def fence_tensormap_initialization(self, *, loc: Any = None, ip: Any = None) -> None:
        """Order the initialisation of tensor maps in global memory before they are changed there."""
        if self.tensormap_update_mode is TensorMapUpdateMode.GMEM:
            fence_acq_rel_cta()

    def fence_tensormap_update(self, tensormap_ptr: Pointer, *, loc: Any = None, ip: Any = None) -> None:
        """Make TMA read the changed tensor map; by each warp that copies by it, before it does."""
        descriptors.fence_tma_desc_acquire(tensormap_ptr)

    def update_tensormap(
        self,
        tensor_gmem: tuple[Tensor, ...],
        tma_copy_atom: tuple[CopyAtom, ...],
        tensormap_gmem_ptr: tuple[Pointer, ...],
        warp_id: int,
        tensormap_smem_ptr: tuple[Pointer, ...] = (),
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        """Warp ``warp_id`` makes each tensor map describe its tensor, and releases it. ``tensormap_smem_ptr`` are the
        places in shared memory where mode SMEM changes them."""
        in_shared = self.tensormap_update_mode is TensorMapUpdateMode.SMEM
        counts = {len(tensor_gmem), len(tma_copy_atom), len(tensormap_gmem_ptr)}
        if len(counts | ({len(tensormap_smem_ptr)} if in_shared else set())) != 1:
            raise ConstraintError(
                f"update_tensormap: {len(tensor_gmem)} tensors, {len(tma_copy_atom)} atoms, {len(tensormap_gmem_ptr)} "
                f"tensor maps in global and {len(tensormap_smem_ptr)} in shared memory; one of each belongs together"
            )
        places = tensormap_smem_ptr if in_shared else tensormap_gmem_ptr
        with _in_warp(warp_id):
            if in_shared:
                sync_warp()  # all lanes have read what the last update copied
            with elect_one():
                for tensor, atom, place in zip(tensor_gmem, tma_copy_atom, places, strict=True):
                    descriptors.update_tma_descriptor(atom, tensor, place)
            sync_warp()
            if in_shared:
                for target, source in zip(tensormap_gmem_ptr, tensormap_smem_ptr, strict=True):
                    descriptors.cp_fence_tma_desc_release(target, source)
            else:
                descriptors.fence_tma_desc_release()


def _in_warp(warp_id: int) -> Any:
    chosen = make_warp_uniform(warp_idx()) == warp_id
    return only_if(as_numeric(chosen).ir_value(), "warp's block")
