"""The compiler's own class, and its debugging, which are not here."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "debug_print_mlir_values set_dynamic_debug",
    public="base_dsl.dsl",
    why="it belongs to the CuTe DSL's own compiler. Use what the documentation of cute.compile describes",
    instead={
        "debug_print_mlir_values": "print(compiled.kernels[0]), which shows the IR",
        "set_dynamic_debug": "cute.printf in the kernel, or `tilewright run --cpu`, which checks it",
    },
)
