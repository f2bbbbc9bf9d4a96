"""``cutlass.experimental.cuda``: tensor maps made by hand, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "TensorMap TensorMapDataFormat(B4X16,B4X16_P64,B6X16_P32,BYTE,DEFAULT) TensorMapSwizzle(none,s32b,s64b,s128b) "
    "create_tensor_map_tiled create_tensor_map_tiled_from_view",
    why="it belongs to the experimental modules of the CuTe DSL. Use cute.nvgpu.cpasync.make_tiled_tma_atom, which "
    "makes the tensor map of a tensor",
)
