"""``tilewright product``: the products that models run, on files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tilewright.cli.gemm import where_to_run
from tilewright.cli.npy import Array, pending_output, read_array
from tilewright.errors import ArgumentError, MachineError

TAKEN = {
    "scaled": ({"scale_a", "scale_b"}, {"bias", "activation"}),
    "mixed": ({"scales"}, {"zeros", "bits", "scale_a", "bias", "activation"}),
    "sparse": (set[str](), {"bias", "activation"}),
    "grouped": (set[str](), {"offsets", "counts", "scale_a", "scale_b"}),
}
"""By product: the options that it needs, and the others that it takes."""


def run(
    kind: str, a_path: Path, b_path: Path, output: Path, machine: str, out_dtype: str | None, **options: Any
) -> None:
    """Read, multiply, write, and say what ran. ``options`` are paths of arrays, or values; None: not given."""
    passed = {name: x for name, x in options.items() if x is not None}
    needed, others = TAKEN[kind]
    for wrong, why in ((needed - set(passed), "needs"), (set(passed) - needed - others, "has no")):
        if wrong:
            raise ArgumentError(f"a product of kind {kind} {why} {', '.join(sorted(map(option, wrong)))}")
    arrays = {name: read_array(x) for name, x in passed.items() if isinstance(x, Path)}
    values = {name: x for name, x in passed.items() if not isinstance(x, Path)}
    a, b, where = read_array(a_path), read_array(b_path), where_to_run(machine)
    if kind in ("scaled", "grouped") and b.dtype.itemsize == 1:  # kernels of 8 bits read B along K
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    put = on_gpu if where == "gpu" else np.asarray
    begin = time.perf_counter()
    with pending_output(output) as write:
        operands = {name: put(x) for name, x in arrays.items()}
        made = PRODUCTS[kind](put(a), put(b), operands, values | {"out_dtype": out_dtype})
        result = from_torch(made) if where == "gpu" else made
        write(result)
    shapes = f"{a.dtype} {tuple(a.shape)} x {b.dtype} {tuple(b.shape)} -> {result.dtype} {tuple(result.shape)}"
    Console().print(f"{kind}: {shapes}, {where}, {time.perf_counter() - begin:.2f} s", highlight=False)


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def scaled(a: Any, b: Any, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    from tilewright.gemm import scaled_matmul

    return scaled_matmul(a, b, **arrays, **values)


def mixed(a: Any, b: Any, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    from tilewright.gemm import mixed_matmul, prepare_weight

    weight = prepare_weight(b, arrays.pop("scales"), arrays.pop("zeros", None), bits=values.pop("bits", 4))
    return mixed_matmul(a, weight, **arrays, **values)


def sparse(a: Any, b: Any, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    from tilewright.gemm import compress_2_4, sparse_matmul

    return sparse_matmul(compress_2_4(a), b, **arrays, **values)


def grouped(a: Any, b: Any, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    from tilewright.gemm import grouped_matmul, scaled_grouped_matmul

    if ("scale_a" in arrays) != ("scale_b" in arrays):
        raise ArgumentError("groups have --scale-a and --scale-b, or none of them")
    if ("offsets" in arrays) == ("counts" in arrays):
        raise ArgumentError("groups have --offsets, where they end, or --counts of their rows")
    if "scale_a" not in arrays:
        return grouped_matmul(a, b, **arrays, **values)
    return scaled_grouped_matmul(a, b, **arrays, **values)


PRODUCTS: dict[str, Callable[..., Any]] = {"scaled": scaled, "mixed": mixed, "sparse": sparse, "grouped": grouped}


def on_gpu(array: Array) -> Any:
    """A tensor of PyTorch with the elements of an array, on the GPU."""
    try:
        import torch
    except ImportError as error:
        raise ArgumentError("products on a GPU go by way of PyTorch, which is not here: give --machine cpu") from error
    if not torch.cuda.is_available():
        raise MachineError("products on a GPU go by way of PyTorch, which sees none: give --machine cpu")
    return to_torch(array).to(torch.device("cuda"))


def to_torch(array: Array) -> Any:
    """A tensor of PyTorch with the elements of an array: types that NumPy does not know go by their bits."""
    import torch

    kept = array.swapaxes(-1, -2) if array.ndim > 1 and array.strides[-1] != array.itemsize else array
    bits = torch.from_numpy(np.array(kept, order="C").view(f"i{array.itemsize}"))
    tensor = bits.view(getattr(torch, array.dtype.name))
    return tensor if kept is array else tensor.transpose(-1, -2)


def from_torch(tensor: Any) -> Array:
    """The array of a tensor."""
    from tilewright.lang.arguments.arrays import array_of

    torch = sys.modules["torch"]
    dtype = array_of(tensor).dtype.dtype
    bits = tensor.cpu().contiguous().view(getattr(torch, f"int{8 * tensor.element_size()}"))
    array: Array = bits.numpy().view(dtype)
    return array
