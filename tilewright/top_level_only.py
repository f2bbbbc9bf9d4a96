"""Names of the module ``cutlass`` itself that are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "Array Float4E2M1FNx2 Float6E3M2FNx4 Float8E4M3B11FNUZ Float8E8M0FNU GridConstant Int4 Swizzle(from_name) Vector "
    "full inttoptr make_array_view print_nd_vector target_version vector",
    public="",
    why=stand_ins.EXPERIMENTAL,
    instead={
        "Array": "cute.make_rmem_tensor (registers) or utils.SmemAllocator (shared memory)",
        "Float4E2M1FNx2": "Float4E2M1FN: tensors of it have two in a byte",
        "Float6E3M2FNx4": "Float6E3M2FN: tensors of it have four in three bytes",
        "Float8E4M3B11FNUZ": "Float8E4M3FN or Float8E5M2: no instruction of these GPUs reads it",
        "Float8E8M0FNU": "Uint8 for the bytes: the number is 2 to the power of the byte minus 127",
        "GridConstant": "a plain kernel parameter: tensor maps of cute.nvgpu.cpasync are grid constants by themselves",
        "Int4": "Int8, or Uint32 with eight of them and shifts",
        "Swizzle": "cute.make_swizzle",
        "Vector": "cute.TensorSSA (tensor.load(), cute.full)",
        "full": "cute.full",
        "inttoptr": "cute.make_ptr",
        "make_array_view": "cute.make_tensor",
        "print_nd_vector": "cute.print_tensor",
        "target_version": "cutlass.CUDA_VERSION",
        "vector": "cute.TensorSSA and its methods",
    },
)
