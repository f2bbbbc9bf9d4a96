"""``cutlass.base_dsl.common``: the errors of the DSL."""

from tilewright.errors import MachineError, TilewrightError

DSLCudaRuntimeError = MachineError
DSLBaseError = TilewrightError
DSLRuntimeError = TilewrightError
DSLUserCodeError = TilewrightError
