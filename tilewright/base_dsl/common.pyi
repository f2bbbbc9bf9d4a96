"""``cutlass.base_dsl.common``: the errors of the DSL."""

from tilewright.errors import (
    MachineError as DSLCudaRuntimeError, TilewrightError as DSLBaseError, TilewrightError as DSLRuntimeError,
    TilewrightError as DSLUserCodeError,
)
