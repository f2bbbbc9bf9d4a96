"""Atoms over many threads: TiledCopy, TiledMma, partitioning, retile, ``cute.copy`` and ``cute.gemm``.

``views``, ``atom``, ``tiled_mma``, ``tiled_copy``, ``make_copy`` and ``retile`` are layout algebra and act on plain
layouts as on tensors; ``staged_copy``, ``vectors`` and ``staged_gemm`` stage instructions.
"""

from tilewright.tiled.atom import (
    Atom as Atom, CopyAtom as CopyAtom, MmaAtom as MmaAtom, make_atom as make_atom,
    make_copy_atom as make_copy_atom, make_mma_atom as make_mma_atom,
)
from tilewright.tiled.make_copy import (
    make_cotiled_copy as make_cotiled_copy, make_tiled_copy as make_tiled_copy,
    make_tiled_copy_A as make_tiled_copy_A, make_tiled_copy_B as make_tiled_copy_B,
    make_tiled_copy_C as make_tiled_copy_C, make_tiled_copy_C_atom as make_tiled_copy_C_atom,
    make_tiled_copy_D as make_tiled_copy_D, make_tiled_copy_S as make_tiled_copy_S,
    make_tiled_copy_tv as make_tiled_copy_tv,
)
from tilewright.tiled.retile import check_retiled as check_retiled, retile_through as retile_through
from tilewright.tiled.staged_copy import (
    basic_copy as basic_copy, basic_copy_if as basic_copy_if, copy as copy, copy_atom_call as copy_atom_call,
)
from tilewright.tiled.staged_gemm import gemm as gemm, mma_atom_call as mma_atom_call
from tilewright.tiled.thread_values import derive_tv_from_thread_value as derive_tv_from_thread_value, thrfrg as thrfrg
from tilewright.tiled.tiled_copy import ThrCopy as ThrCopy, TiledCopy as TiledCopy
from tilewright.tiled.tiled_mma import (
    ThrMma as ThrMma, TiledMma as TiledMma, make_tiled_mma as make_tiled_mma,
    partition_shape_A as partition_shape_A, partition_shape_B as partition_shape_B,
    partition_shape_C as partition_shape_C,
)
from tilewright.tiled.vectors import autovec_copy as autovec_copy
