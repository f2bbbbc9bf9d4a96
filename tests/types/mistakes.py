"""What both type checkers must refuse. Lines end with the codes of their errors, ``# E: mypy's | pyright's``."""

from __future__ import annotations

import tilewright as cutlass
from tilewright import cute, utils

# -- names that are nowhere ------------------------------------------------------------------------------------------

_ = cute.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.arch.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.math.cosh(1.0)  # E: attr-defined | reportAttributeAccessIssue
_ = cute.nvgpu.warp.MmaF16BF16  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Int33  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.sim.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.cuda.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = utils.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.Layout((4, 8), (1, 4)).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Int32(1).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Float16.nonsense  # E: attr-defined | reportAttributeAccessIssue
