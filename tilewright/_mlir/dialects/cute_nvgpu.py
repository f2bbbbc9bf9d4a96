"""``cutlass._mlir.dialects.cute_nvgpu``: TMA atoms for tiles that the user's own layout gives, as kernels that load
pages of a cache make them. The other names stand for nothing."""

from __future__ import annotations

from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout
from tilewright.tiled.tma.atom import make_tiled_tma_atom

__all__ = ["atom_make_non_exec_tiled_tma_load"]
attach(__name__)


def atom_make_non_exec_tiled_tma_load(
    gmem_tensor: Any,
    smem_layout: Any,
    cta_v_map: Any,
    operation: Any,
    *,
    num_multicast: int = 1,
    loc: Any = None,
    ip: Any = None,
) -> list[Any]:
    """The atom and the TMA tensor of :func:`~tilewright.tiled.tma.atom.make_tiled_tma_atom`. ``cta_v_map``: the layout
    of a tile, from the places of shared memory in their order to coordinates of ``gmem_tensor``."""
    if not isinstance(gmem_tensor, Tensor) or not isinstance(smem_layout, Layout | ComposedLayout):
        raise ConstraintError(
            "atom_make_non_exec_tiled_tma_load takes a tensor and a layout of shared memory (their .value), not "
            f"{gmem_tensor!r} and {smem_layout!r}"
        )
    made = make_tiled_tma_atom(operation, gmem_tensor, smem_layout, cta_v_map, num_multicast)
    return [made.atom, made.tma_tensor]
