# Made by `python tools/stubs.py` from tilewright/base_dsl/_mlir_helpers/op.py; do not edit.
"""``cutlass.base_dsl._mlir_helpers.op``: an older place of ``dsl_user_op``."""

from tilewright.lang.staging.protocol import dsl_user_op as dsl_user_op
