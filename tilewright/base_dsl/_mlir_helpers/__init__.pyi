# Made by `python tools/stubs.py` from tilewright/base_dsl/_mlir_helpers/__init__.py; do not edit.
"""``cutlass.base_dsl._mlir_helpers``: where programs import ``dsl_user_op`` from."""

from tilewright.base_dsl._mlir_helpers import op as op
