"""Copying a matrix by TMA: no thread touches an element.

    python examples/tma_copy.py [--gpu] [--gib 1]

One warp of each block copies tile after tile through a ring of stages in shared memory: loads are issued ``AHEAD``
tiles before they are needed, and a stage is loaded again as soon as the store that reads it has finished reading.
Left alone, ``copy`` takes a block for each tile and lets the hardware deal them out: several short blocks on each
multiprocessor keep memory busier than one long one (0.98 of the device's own copy on an H200, against 0.93).
Everything else, addresses, edges and the movement itself, is the hardware's. With ``--gib`` it is timed against the
device's own copy.

Needs Tilewright; with --gpu also PyTorch (`pip install torch`) and the extra `cuda`.
"""

# %% [markdown]
# ## A ring of two stages
#
# A load reports to the mbarrier of its stage when its bytes are there; a store is waited for in groups. The timeline
# has one block with four tiles: while a tile is stored, the next one is loaded.
#
# ![a block copies four tiles](copy.svg)
#
# ## The speed
#
# 1 GiB on an H200: 0.97 to 0.99 of the device's own copy ([measurements](../measurements/index.md)).

# %%
from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.viz import Timeline, timeline

TILE = (32, 256)  # TMA moves up to 256 elements along each mode
STAGES, AHEAD = 2, 1
IN_A_ROW = 5


# %% [markdown]
# ## The kernel


# %%
class TmaCopy:
    """``b = a`` for matrices of one shape, with contiguous rows that begin at multiples of 16 bytes.

    ``blocks`` share the tiles; None: a block for each.
    """

    def __init__(
        self, blocks: int | None, tile: tuple[int, int] = TILE, stages: int = STAGES, ahead: int = AHEAD
    ) -> None:
        self.blocks, self.tile, self.stages, self.ahead = blocks, tile, stages, ahead

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, stream: Any = None):
        layout = cute.make_layout(self.tile, stride=(self.tile[1], 1))
        load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, self.tile)
        store = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, self.tile)
        blocks: Any = self.blocks
        if cutlass.const_expr(blocks is None):
            blocks = cute.size(cute.zipped_divide(a, self.tile), mode=[1])
        self.kernel(*load, *store, a.element_type, blocks).launch(grid=(blocks, 1, 1), block=(32, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        a: cute.Tensor,
        store: cute.CopyAtom,
        b: cute.Tensor,
        dtype: cutlass.Constexpr,
        blocks: cutlass.Int32,
    ):
        cpasync.prefetch_descriptor(load)
        cpasync.prefetch_descriptor(store)
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, self.stages)
        layout = cute.make_layout((*self.tile, self.stages), stride=(self.tile[1], 1, self.tile[0] * self.tile[1]))
        ring = smem.allocate_tensor(dtype, layout, 128)
        with cute.arch.elect_one():
            for stage in range(self.stages):
                cute.arch.mbarrier_init(full + stage, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_warp()

        gA, gB = (cute.group_modes(cute.zipped_divide(x, self.tile), 1, 2) for x in (a, b))  # (TILE, tiles)
        sT, one = cute.group_modes(ring, 0, 2), cute.make_layout(1)  # (TILE, STAGE)
        sA, gA = cpasync.tma_partition(load, 0, one, sT, gA)  # ((TMA, REST), STAGE), ((TMA, REST), tiles)
        sB, gB = cpasync.tma_partition(store, 0, one, sT, gB)

        first, _, _ = cute.arch.block_idx()
        tiles = cute.size(gA, mode=[1])
        count = (tiles - first + blocks - 1) // blocks
        for i in cutlass.range_constexpr(self.ahead):
            if i < count:
                self.fetch(load, gA[None, first + i * blocks], sA[None, i], full + i)
        for i in cutlass.range(count):
            stage = i % self.stages
            cute.arch.mbarrier_wait(full + stage, i // self.stages % 2)
            cute.copy(store, sB[None, stage], gB[None, first + i * blocks])
            cute.arch.cp_async_bulk_commit_group()
            # The stage of tile i + ahead was read by the store that came stages - ahead groups before this one.
            cute.arch.cp_async_bulk_wait_group(self.stages - self.ahead, read=True)
            later = i + self.ahead
            if later < count:
                stage = later % self.stages
                self.fetch(load, gA[None, first + later * blocks], sA[None, stage], full + stage)
        cute.arch.cp_async_bulk_wait_group(0, read=True)

    @cute.jit
    def fetch(self, load: cute.CopyAtom, source: cute.Tensor, target: cute.Tensor, full: cute.Pointer):
        """Let the next tile come; ``full`` completes a phase when all of it is there."""
        size = cute.size_in_bytes(target.element_type, cute.make_layout(self.tile))
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, size)
        cute.copy(load, source, target, tma_bar_ptr=full)


# %% [markdown]
# ## Launching it

# %%
_compiled: dict[Any, Any] = {}


def is_contiguous(x: Any) -> bool:
    return bool(x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous())


def prepared(a: Any, b: Any, blocks: int | None = None) -> Any:
    """A callable that launches ``b = a`` for NumPy arrays or PyTorch tensors and does nothing else. Contiguous ones are
    copied as rows of 256 elements."""
    flat = all(map(is_contiguous, (a, b))) and a.shape[0] * a.shape[1] % 256 == 0
    views = [
        from_dlpack(x.reshape(-1, 256) if flat else x, assumed_align=16).mark_layout_dynamic(leading_dim=1)
        for x in (a, b)
    ]
    key = (views[0].element_type, blocks, type(a))
    if key not in _compiled:
        _compiled[key] = cute.compile(TmaCopy(blocks), *views)
    return _compiled[key].bind(*views)


def copy(a: Any, b: Any, blocks: int | None = None) -> Any:
    """``b = a``; gives ``b``."""
    prepared(a, b, blocks)()
    return b


def pictures() -> dict[str, Timeline]:
    """One block with four tiles, in the time of the simulator's model."""
    a = np.zeros((128, 256), np.float32)
    with sim.trace() as trace:
        copy(a, np.empty_like(a), blocks=1)
    return {"copy.svg": timeline(trace, title="four tiles through two stages")}


# %% [markdown]
# ## The check, and the measurement


# %%
def timed(gib: float) -> None:
    """Against the device's own copy, alternating; the medians. Several copies in a row hide the launches."""
    import torch

    a = torch.empty(int(gib * 2**30) // 1024, 256, dtype=torch.float32, device="cuda").normal_()
    b = torch.empty_like(a)
    ways = {"TMA": prepared(a, b), "device": lambda: b.copy_(a)}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(20):
        for name, way in ways.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(IN_A_ROW):
                way()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / IN_A_ROW)
    medians = {name: float(np.median(found[2:])) for name, found in times.items()}
    for name, ms in medians.items():
        print(f"{name}: {ms:.3f} ms, {2 * gib * 2**30 / ms / 1e9:.2f} TB/s")
    print(f"TMA / device: {medians['device'] / medians['TMA']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="run on the GPU instead of the simulator")
    parser.add_argument("--gib", type=float, help="time a copy of this many GiB (GPU)")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for shape, dtype in (((300, 1000), np.float32), ((64, 256), np.float16), ((1000, 48), np.int8)):
        a = rng.integers(-9, 9, shape).astype(dtype)
        source, target = machine_arrays(a, np.zeros_like(a))
        title = f"copy of {shape[0]} x {shape[1]} {a.dtype}"
        report(title, to_numpy(copy(source, target, blocks=8)), a)
    if options.gib:
        timed(options.gib)


# -- arrays for the machine that is asked for, and the check of the result ---------------------------------------------


def machine_arrays(*arrays: np.ndarray) -> list[Any]:
    """The arrays as they are (simulator), or as CUDA tensors when ``--gpu`` is on the command line."""
    if "--gpu" not in sys.argv:
        return list(arrays)
    return [to_torch(array).cuda() for array in arrays]


def to_torch(array: np.ndarray) -> Any:
    """The array as a torch tensor with the same strides; bf16 travels as its bits, which torch reads from NumPy."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


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
