"""A tensor-parallel feed-forward layer on two processes: ``sharded.py cpu`` (gloo, simulator) or ``cuda`` (NCCL).

The first weight is sharded by columns, the second by rows; the operator's sharding rule has to find that the product in
between stays where it is, and that the last one is a sum over the devices. Forward and gradients are compared with
those of one device.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from tilewright.gemm import matmul


def layer(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    return matmul(matmul(x, up, activation="relu"), down)


def work(rank: int, device: str, port: int) -> None:
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    mesh = init_device_mesh(device, (2,))
    torch.manual_seed(0)
    dtype = torch.float16 if device == "cuda" else torch.float32
    whole = [torch.randint(-2, 3, s).to(device, dtype) for s in ((2, 8, 32), (32, 64), (64, 16))]
    placements = (Replicate(), Shard(1), Shard(0))
    sharded = [distribute_tensor(x, mesh, [p]).requires_grad_() for x, p in zip(whole, placements, strict=True)]
    result = layer(*sharded)
    assert isinstance(result, DTensor) and result.placements == (Partial(),), result.placements
    whole = [x.requires_grad_() for x in whole]
    expected = torch.relu(whole[0] @ whole[1]) @ whole[2]
    torch.testing.assert_close(result.full_tensor(), expected)
    found = torch.autograd.grad(result.sum(), sharded)
    for one, other in zip(found, torch.autograd.grad(expected.sum(), whole), strict=True):
        torch.testing.assert_close(one.full_tensor(), other)
    weight = sharded[1].detach().redistribute(mesh, [Replicate()])
    rows = matmul(distribute_tensor(whole[0].detach(), mesh, [Shard(1)]), weight)
    assert rows.placements == (Shard(1),)
    print("as one device computes it", flush=True)
    dist.destroy_process_group()


def free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], free_port()), nprocs=2)
