"""Options of test programs that are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "add_tensor_init_args validate_tensor_init_args",
    public="testing",
    why="it reads options of the CuTe DSL's own example programs. Use argparse and cutlass.torch.matrix",
)
