# Made by `python tools/stubs.py` from tilewright/tiled/__init__.py; do not edit.
"""Atoms over many threads: TiledCopy, TiledMma, partitioning, retile, ``cute.copy`` and ``cute.gemm``.

``views``, ``atom``, ``tiled_mma``, ``tiled_copy``, ``make_copy`` and ``retile`` are layout algebra and act on plain
layouts as on tensors; ``staged_copy``, ``vectors`` and ``staged_gemm`` stage instructions.
"""

from tilewright.tiled.atom import Atom as Atom
from tilewright.tiled.atom import CopyAtom as CopyAtom
from tilewright.tiled.atom import MmaAtom as MmaAtom
from tilewright.tiled.atom import make_atom as make_atom
from tilewright.tiled.atom import make_copy_atom as make_copy_atom
from tilewright.tiled.atom import make_mma_atom as make_mma_atom
from tilewright.tiled.make_copy import make_cotiled_copy as make_cotiled_copy
from tilewright.tiled.make_copy import make_tiled_copy as make_tiled_copy
from tilewright.tiled.make_copy import make_tiled_copy_A as make_tiled_copy_A
from tilewright.tiled.make_copy import make_tiled_copy_B as make_tiled_copy_B
from tilewright.tiled.make_copy import make_tiled_copy_C as make_tiled_copy_C
from tilewright.tiled.make_copy import make_tiled_copy_C_atom as make_tiled_copy_C_atom
from tilewright.tiled.make_copy import make_tiled_copy_D as make_tiled_copy_D
from tilewright.tiled.make_copy import make_tiled_copy_S as make_tiled_copy_S
from tilewright.tiled.make_copy import make_tiled_copy_tv as make_tiled_copy_tv
from tilewright.tiled.retile import check_retiled as check_retiled
from tilewright.tiled.retile import retile_through as retile_through
from tilewright.tiled.staged_copy import basic_copy as basic_copy
from tilewright.tiled.staged_copy import basic_copy_if as basic_copy_if
from tilewright.tiled.staged_copy import copy as copy
from tilewright.tiled.staged_copy import copy_atom_call as copy_atom_call
from tilewright.tiled.staged_gemm import gemm as gemm
from tilewright.tiled.staged_gemm import mma_atom_call as mma_atom_call
from tilewright.tiled.thread_values import derive_tv_from_thread_value as derive_tv_from_thread_value
from tilewright.tiled.thread_values import thrfrg as thrfrg
from tilewright.tiled.tiled_copy import ThrCopy as ThrCopy
from tilewright.tiled.tiled_copy import TiledCopy as TiledCopy
from tilewright.tiled.tiled_mma import ThrMma as ThrMma
from tilewright.tiled.tiled_mma import TiledMma as TiledMma
from tilewright.tiled.tiled_mma import make_tiled_mma as make_tiled_mma
from tilewright.tiled.tiled_mma import partition_shape_A as partition_shape_A
from tilewright.tiled.tiled_mma import partition_shape_B as partition_shape_B
from tilewright.tiled.tiled_mma import partition_shape_C as partition_shape_C
from tilewright.tiled.vectors import autovec_copy as autovec_copy
