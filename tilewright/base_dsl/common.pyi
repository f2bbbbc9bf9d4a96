# Made by `python tools/stubs.py` from tilewright/base_dsl/common.py; do not edit.
"""``cutlass.base_dsl.common``: the errors of the DSL."""

from tilewright.errors import MachineError as DSLCudaRuntimeError
from tilewright.errors import TilewrightError as DSLBaseError
from tilewright.errors import TilewrightError as DSLRuntimeError
from tilewright.errors import TilewrightError as DSLUserCodeError
