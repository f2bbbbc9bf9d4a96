"""``cutlass.base_dsl.common``: the errors of the DSL."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.errors": (
            "DSLBaseError=TilewrightError DSLRuntimeError=TilewrightError DSLCudaRuntimeError=MachineError "
            "DSLUserCodeError=TilewrightError"
        ),
    },
)
