# Made by `python tools/stubs.py` from tilewright/base_dsl/later.py; do not edit.
"""The compiler's own class, and its debugging, which are not here."""

from typing import Any

class debug_print_mlir_values(Any):
    """Not here yet: using it is an error that says why."""

class set_dynamic_debug(Any):
    """Not here yet: using it is an error that says why."""
