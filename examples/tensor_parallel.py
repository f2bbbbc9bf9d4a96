"""A feed-forward layer spread over several devices by PyTorch's own tensor parallelism, with Tilewright's products.

    python examples/tensor_parallel.py                                  # two processes, the simulator, gloo
    python examples/tensor_parallel.py --gpu                            # two GPUs, NCCL
    torchrun --nproc-per-node 2 examples/tensor_parallel.py --gpu       # the same, started by torchrun

The layer is written for one device. ``parallelize_module`` shards the weights of ``up`` by columns and of ``down`` by
rows; the operator ``torch.ops.tilewright.matmul`` tells DTensor which ways of sharding fit, so the product in between
stays where it is, and the last one is a sum over the devices: one all-reduce. Forward and gradients are compared with a
layer of float64 on one device.

Needs PyTorch (`pip install torch`).
"""

# %% [markdown]
# ## The program

# %%
from __future__ import annotations

import os
import socket
import sys
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from tilewright.gemm import matmul

SIZES = {"cuda": (1024, 4096, (4, 256)), "cpu": (32, 64, (2, 8))}
"""Features, hidden features and batch."""


class Linear(torch.nn.Linear):
    """``torch.nn.Linear`` by ``tilewright.gemm.matmul``."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return matmul(input, self.weight.mT, bias=self.bias)


class FeedForward(torch.nn.Module):
    def __init__(self, features: int, hidden: int, linear: Any, **how: Any) -> None:
        super().__init__()
        self.up = linear(features, hidden, **how)
        self.down = linear(hidden, features, bias=False, **how)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.gelu(self.up(x)))


def work(rank: int, processes: int, device: str, address: str | None) -> None:
    """One process: its part of the layer, and the whole layer in float64."""
    backend = "nccl" if device == "cuda" else "gloo"
    if device == "cuda":
        torch.cuda.set_device(rank)
    elif processes > 1:
        torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=processes)
    mesh = init_device_mesh(device, (processes,))
    features, hidden, batch = SIZES[device]
    dtype = torch.float16 if device == "cuda" else torch.float32

    torch.manual_seed(0)  # the same weights in every process
    whole = FeedForward(features, hidden, torch.nn.Linear, dtype=dtype).to(device)
    layer = FeedForward(features, hidden, Linear, dtype=dtype).to(device)
    layer.load_state_dict(whole.state_dict())
    parallelize_module(layer, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    assert all(isinstance(parameter, DTensor) for parameter in layer.parameters())
    reference = whole.double()

    x = torch.randn(*batch, features, device=device).to(dtype)
    y, exact = x.clone().requires_grad_(), x.double().requires_grad_()
    result, expected = layer(y), reference(exact)
    grad = torch.randn(*batch, features, device=device).to(dtype)
    result.backward(grad)
    expected.backward(grad.double())
    if rank == 0:
        up, down = (part.weight.placements for part in (layer.up, layer.down))
        print(f"{processes} processes, {backend}, {dtype}: up {up}, down {down}")
    compare("result", result, expected, rank)
    compare("gradient of x", y.grad, exact.grad, rank)
    for (name, one), other in zip(layer.named_parameters(), reference.parameters(), strict=True):
        compare(f"gradient of {name}", one.grad, other.grad, rank)
    dist.destroy_process_group()


def compare(name: str, found: Any, expected: Any, rank: int) -> None:
    """All processes gather what is spread; the first one reports."""
    whole = (found.full_tensor() if isinstance(found, DTensor) else found).detach().double()  # waits for the others
    if rank == 0:
        report(name, whole, expected.detach().cpu().numpy())


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def main() -> None:
    device = "cuda" if "--gpu" in sys.argv else "cpu"
    if "RANK" in os.environ:  # started by torchrun
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device, "env://")
        return
    processes = min(2, torch.cuda.device_count()) if device == "cuda" else 2
    # A forked process has PyTorch already; with CUDA, and where a fork is not safe, each one starts afresh.
    method = "fork" if device == "cpu" and sys.platform == "linux" else "spawn"
    mp.start_processes(work, (processes, device, free_address()), nprocs=processes, start_method=method)


# -- arrays for the machine that is asked for, and the check of the result ---------------------------------------------


def to_numpy(array: Any) -> np.ndarray:
    """The array on the host; torch's bf16 comes as float32."""
    if isinstance(array, np.ndarray):
        return array
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).cpu().numpy()


def report(title: str, result: Any, expected: np.ndarray) -> None:
    """Print the largest relative error and raise when it is beyond rounding."""
    got = to_numpy(result).astype(np.float64)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(got - expected).max(initial=0.0)) / scale
    print(f"{title}: largest error {error:.2e} of {scale:.3g}")
    if not error < 1e-2:
        raise SystemExit(f"{title}: wrong result")


if __name__ == "__main__":
    main()
