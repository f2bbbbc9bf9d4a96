"""Tensor maps inside kernels: prefetched, copied to memory, changed there for another tensor, and fenced."""

from __future__ import annotations

from typing import Any

from tilewright.atoms import tensormap
from tilewright.errors import ConstraintError
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Int64, Uint32, Uint64
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, basis_get, is_congruent
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.tma.atom import TmaCopyAtom, static_leaves
from tilewright.tiled.tma.plan import TmaPlan, mode_name


def prefetch_descriptor(tma_atom: CopyAtom, *, loc: Any = None, ip: Any = None) -> None:
    """Bring the tensor map of ``tma_atom`` near before its first copy; one warp does it at the kernel's start."""
    call(tensormap.PrefetchTensorMap(), _atom("prefetch_descriptor", tma_atom).tensor_map)


def prefetch(
    atom: CopyAtom, src: Tensor, *, cache_policy: Any = None, tma_desc_ptr: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """Bring the boxes of ``src``, a partitioned TMA tensor, to the L2 cache. A whole warp calls it."""
    _atom("cute.prefetch", atom).stage_prefetch(src, cache_policy=cache_policy, tma_desc_ptr=tma_desc_ptr)


def copy_tensormap(tma_atom: CopyAtom, tensormap_ptr: Pointer, *, loc: Any = None, ip: Any = None) -> None:
    """Copy the tensor map of ``tma_atom`` to the 128 bytes at ``tensormap_ptr``. One thread does it (elect_one)."""
    call(tensormap.CopyTensorMap(), tensormap_ptr, _atom("copy_tensormap", tma_atom).tensor_map)


def update_tma_descriptor(
    tma_atom: CopyAtom, gmem_tensor: Tensor, tma_desc_ptr: Pointer, *, loc: Any = None, ip: Any = None
) -> None:
    """Make the tensor map at ``tma_desc_ptr``, a copy of ``tma_atom``'s, describe ``gmem_tensor`` instead: its address,
    extents and strides. One thread does it (elect_one).

    Args:
        tma_atom: the atom whose tensor map was copied.
        gmem_tensor: the tensor in global memory.
        tma_desc_ptr: a pointer to the copy, 128 bytes.

    ``gmem_tensor`` has the profile, the element type and the contiguous mode of the tensor that the atom was made for.
    A stride there that is known while staging must be 1. One that is not known must be 1, too, unless the mode has one
    element: the simulator stops where it is another, a GPU brings other elements than those of the tensor. The same
    holds for the address and the other strides, which are multiples of 16 bytes.
    """
    plan = _atom("update_tma_descriptor", tma_atom).plan
    _check_like(plan, gmem_tensor, tma_atom)
    call(tensormap.ReplaceTensorMap("global_address"), tma_desc_ptr, Uint64(gmem_tensor.engine.toint()))
    bits = plan.source.memory_bits
    for i in range(len(plan.basis)):
        (step,) = plan.steps(i)
        extent = basis_get(step, gmem_tensor.shape)
        if i == 0 and plan.element.width != bits:
            extent = extent * bits // (plan.element.width)
        if i == 0:
            _check_contiguous(plan, gmem_tensor, step)
        else:
            elements = Int64(basis_get(step, gmem_tensor.stride))
            stride = elements * bits // 8 if bits < 8 else elements * (bits // 8)
            call(tensormap.ReplaceTensorMap("global_stride", i - 1), tma_desc_ptr, Uint64(stride))
        call(tensormap.ReplaceTensorMap("global_dim", i), tma_desc_ptr, Uint32(extent))


def fence_tma_desc_acquire(tma_desc_ptr: Pointer, *, loc: Any = None, ip: Any = None) -> None:
    """Make TMA read the tensor map at ``tma_desc_ptr`` (global memory) again; before the copies that use it."""
    call(tensormap.FenceTensorMapAcquire(), tma_desc_ptr)


def fence_tma_desc_release(*, loc: Any = None, ip: Any = None) -> None:
    """Release the tensor maps that this thread has changed in global memory to other threads."""
    call(tensormap.FenceTensorMapRelease())


def cp_fence_tma_desc_release(
    tma_desc_global_ptr: Pointer, tma_desc_shared_ptr: Pointer, *, loc: Any = None, ip: Any = None
) -> None:
    """Copy a tensor map from shared to global memory and release it there. A whole warp does it."""
    call(tensormap.CopyTensorMapRelease(), tma_desc_global_ptr, tma_desc_shared_ptr)


def _atom(what: str, atom: Any) -> TmaCopyAtom:
    if not isinstance(atom, TmaCopyAtom):
        raise ConstraintError(f"{what} takes a TMA copy atom (make_tiled_tma_atom), not {atom!r}")
    return atom


def _check_like(plan: TmaPlan, tensor: Any, atom: CopyAtom) -> None:
    if not isinstance(tensor, Tensor) or not isinstance(tensor.engine, Pointer):
        raise ConstraintError(f"update_tma_descriptor takes a tensor in global memory, not {tensor}")
    if tensor.element_type.ir_type != plan.source:
        raise ConstraintError(
            f"update_tma_descriptor: {atom.scalar} in the tensor map, {tensor.element_type} in {tensor}"
        )
    shared = [i for i in range(len(plan.basis)) if len(plan.steps(i)) != 1]
    if shared:
        raise ConstraintError(
            f"update_tma_descriptor: TMA mode {shared[0]} stands for several modes of {plan.gmem}, whose extents "
            "cannot be "
            "replaced one by one: make the atom for a tensor of at most five modes that do not follow each other"
        )
    leaves = static_leaves(tensor.linear)
    like = isinstance(leaves, Layout) and is_congruent(leaves.shape, plan.gmem.shape)
    contiguous = basis_get(plan.steps(0)[0], leaves.stride) if like else None
    if not like or (isinstance(contiguous, int) and contiguous != 1):
        raise ConstraintError(
            f"update_tma_descriptor: {leaves} is not like {plan.gmem}, for which the tensor map was made: it needs "
            "the same "
            "modes, and the same one contiguous"
        )


def _check_contiguous(plan: TmaPlan, tensor: Tensor, step: Any) -> None:
    """Let the simulator check a stride of the contiguous mode that only the running program knows."""
    stride = basis_get(step, tensor.stride)
    if not isinstance(stride, int):
        where = f"update_tma_descriptor: {mode_name(step)} of {tensor.linear} x {plan.source}"
        call(tensormap.CheckContiguous(where), Int64(stride), Int64(basis_get(step, tensor.shape)))
