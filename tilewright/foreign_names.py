"""What CUDA C++, Triton, Numba, NumPy and PyTorch call a thing, and what it is called here: for the errors of names
that do not exist here."""

from __future__ import annotations

PLACES = (
    "cute",
    "cute.arch",
    "cute.math",
    "cute.nvgpu",
    "cute.nvgpu.cpasync",
    "cute.nvgpu.warp",
    "cute.nvgpu.warpgroup",
    "cute.nvgpu.tcgen05",
    "cute.runtime",
    "utils",
    "pipeline",
)
"""Public modules in which a name is looked for that another one does not have, the usual ones first."""

OF_MODULES = {
    "program_id": "cute.arch.block_idx()",
    "num_programs": "cute.arch.grid_dim()",
    "blockIdx": "cute.arch.block_idx()",
    "threadIdx": "cute.arch.thread_idx()",
    "blockDim": "cute.arch.block_dim()",
    "gridDim": "cute.arch.grid_dim()",
    "arange": "cute.arch.thread_idx() for a thread's own index, or cute.make_identity_tensor(shape) for coordinates",
    "shared_memory": "utils.SmemAllocator().allocate_tensor(dtype, layout)",
    "shared": "utils.SmemAllocator().allocate_tensor(dtype, layout)",
    "zeros": "cute.zeros_like(x), or cute.make_rmem_tensor(shape, dtype) and its fill(0)",
    "empty": "cute.make_rmem_tensor(shape, dtype)",
    "dot": "cute.gemm(tiled_mma, d, a, b, c)",
    "sum": "x.reduce(cute.ReductionOp.ADD, 0.0, 0) of x = tensor.load()",
    "cdiv": "cute.ceil_div(a, b)",
    "atomicAdd": "cute.arch.atomic_add(pointer, value)",
    "shfl_down": "cute.arch.shuffle_sync_down(value, offset)",
    "shfl_xor": "cute.arch.shuffle_sync_bfly(value, offset)",
    "shfl": "cute.arch.shuffle_sync(value, offset)",
}

OF_TENSORS = {
    "size": "cute.size(x)",
    "numel": "cute.size(x)",
    "ndim": "cute.rank(x)",
    "T": "cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0]))",
    "transpose": "cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0]))",
    "reshape": "cute.make_tensor(x.iterator, cute.composition(x.layout, cute.make_layout(shape)))",
    "view": "cute.make_tensor(x.iterator, layout)",
    "astype": "x.load().to(dtype)",
    "to": "x.load().to(dtype)",
    "sum": "x.load().reduce(cute.ReductionOp.ADD, 0.0, 0)",
    "max": "x.load().reduce(cute.ReductionOp.MAX, float('-inf'), 0)",
    "min": "x.load().reduce(cute.ReductionOp.MIN, float('inf'), 0)",
    "copy": "cute.autovec_copy(source, destination)",
    "copy_": "cute.autovec_copy(source, destination)",
    "zero_": "x.fill(0)",
    "numpy": "the array that the program passed to the kernel",
}


def of_tensor(kind: str, name: str) -> str:
    """What ``x.name`` of a tensor is here; empty where that is not known.

    >>> of_tensor("Tensor", "numel"), of_tensor("TensorSSA", "sum")
    ('; here it is cute.size(x)', '; here it is x.reduce(cute.ReductionOp.ADD, 0.0, 0)')
    """
    if kind not in ("Tensor", "TensorSSA") or name not in OF_TENSORS:
        return ""
    text = OF_TENSORS[name]
    return f"; here it is {text.replace('x.load()', 'x') if kind == 'TensorSSA' else text}"
