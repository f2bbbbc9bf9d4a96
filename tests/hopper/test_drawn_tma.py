"""TMA copies of drawn layouts are exact, or refused with an error of ours.

``python -m tests.hopper.test_drawn_tma --cases 1000 --jobs 2`` searches further and counts; ``--device cuda`` on
the GPU.
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.hopper.drawn_tma import DrawnCopy, aligned
from tests.hopper.tma_programs import Through
from tests.search_options import add_options, in_processes, leave
from tilewright import cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, SimulationError
from tilewright.layout import Swizzle, make_composed_layout, parse


def counted(seeds: Iterable[int], ways: bool = False) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    for seed in seeds:
        case = DrawnCopy(seed, ways)
        try:
            found = case.run()
        except Exception as error:
            raise AssertionError(f"{case} ends in {error!r}") from error
        assert not found.startswith("wrong"), f"{case} copies other elements: {found}"
        counts[found.partition(":")[0]] += 1
    return counts


def test_drawn_copies_are_exact_or_refused() -> None:
    """Few: :mod:`tests.hopper.test_plans` draws the plans alone."""
    assert counted(range(30))["exact"] >= 6  # the draw is not all refusals


def test_drawn_copies_in_other_ways() -> None:
    """Loads for two blocks and reductions, from another origin, also before the tensor, by rows that a swizzle's span
    separates: seeds that are exact."""
    seeds = [7, 20, 103, 134, 157, 174, 175, 202, 211, 277]
    assert counted(seeds, ways=True) == {"exact": len(seeds)}


@pytest.mark.parametrize("seed", [71, 144, 173, 233, 290, 5058, 100352])
def test_copies_that_gave_other_elements(seed: int) -> None:
    """An extent that is not a whole number of copied elements; a ragged mode inside a merged one, whose end TMA did not
    see; a shared-memory layout with two elements at one address; a ragged mode of stride 0, whose end nothing saw; a
    mode of extent 1 whose tiles are several boxes long."""
    counted(range(seed, seed + 1))


@pytest.mark.gpu
def test_drawn_copies_on_a_gpu() -> None:
    """In processes of their own: a copy that the GPU refuses takes the CUDA context with it."""
    command = [sys.executable, "-m", "tests.hopper.test_drawn_tma", "--device", "cuda", "--cases", "40", "--jobs", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_strides_that_only_the_launch_knows() -> None:
    """The contiguous mode's stride, too."""
    smem = make_composed_layout(Swizzle(3, 4, 3), 0, parse("((8,8),(64,1)):((64,512),(1,0))"))
    given = np.arange(128 * 128).reshape(128, 128).astype(np.float16)
    copied = aligned(given.size, np.float16).reshape(given.shape)
    source = aligned(given.size, np.float16).reshape(given.shape)
    source[:] = given

    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor, row: cutlass.Int32, column: cutlass.Int32):
        layout = cute.make_layout((128, 128), stride=(row, column))
        a, b = (cute.make_tensor(x.iterator, layout) for x in (a, b))
        Through((64, 64), smem, in_bytes=True)(a, b)

    views = [from_dlpack(x, assumed_align=16) for x in (source, copied)]
    run(*views, 128, 1)
    np.testing.assert_array_equal(copied, given)
    with pytest.raises(ArgumentError, match=r"TMA needs contiguous elements there|is not a multiple of 16 bytes"):
        run(*views, 128, 2)
    with pytest.raises(ArgumentError, match="is negative .-128.; TMA steps forwards only"):
        run(*views, -128, 1)


@pytest.mark.parametrize(("extent", "written"), [(95, 96), (92, 92), (93, 96), (65, 68)])
def test_a_store_writes_whole_chunks_of_16_bytes(extent: int, written: int) -> None:
    """The rest of the last chunk comes from the box, which the load filled with zeros; the next chunk is left alone."""
    given, copied = aligned(128, np.float32), aligned(128, np.float32)
    given[:], copied[:] = np.arange(128) + 1, -1

    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor):
        a, b = (cute.make_tensor(x.iterator, cute.make_layout(extent)) for x in (a, b))
        Through((32,), cute.make_layout(32))(a, b)

    run(*(from_dlpack(x, assumed_align=16) for x in (given, copied)))
    zeros, rest = np.zeros(written - extent, np.float32), np.full(128 - written, -1, np.float32)
    np.testing.assert_array_equal(copied, np.concatenate([given[:extent], zeros, rest]))
    if written > extent:  # an array that ends with the tensor has no room for the chunk
        with pytest.raises(SimulationError, match="(?s)array that this launch knows.*whole chunks of 16 bytes"):
            run(from_dlpack(given, assumed_align=16), from_dlpack(copied[:extent], assumed_align=16))


@pytest.mark.parametrize(
    ("text", "shape", "stride", "tile", "smem", "options"),
    [
        (
            "strides must be known while staging unless tiles have extent 1",
            (2,) * 5 + (8,),
            None,
            (2,) * 5 + (8,),
            (128, 64, 32, 16, 8, 1),
            {},
        ),
        ("must be 1 while staging", (8, 16), None, (8, 16), (16, 1), {"internal_type": cutlass.Int32}),
        ("gives several elements of the tile one address", (8, 16), (16, 1), (8, 16), (0, 1), {}),
        (
            r"less than the swizzle span: 16 x f16 \(32 bytes.*64 bytes apart.*32 elements long.*32B or NONE",
            (8, 16),
            (16, 1),
            (8, 16),
            "Sw<2,4,3> o 0 o (8,16):(16,1)",
            {},
        ),
    ],
)
def test_refusals(text: str, shape: Any, stride: Any, tile: Any, smem: Any, options: Any) -> None:
    @cute.jit
    def make(memory: cute.Tensor, numbers: list):
        tensor = cute.make_tensor(memory.iterator, cute.make_layout(shape, stride=stride or tuple(numbers)))
        op = cpasync.CopyBulkTensorTileG2SOp()
        held = parse(smem) if isinstance(smem, str) else cute.make_layout(tile, stride=smem)
        cpasync.make_tiled_tma_atom(op, tensor, held, tile, **options)

    steps = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    with pytest.raises(ConstraintError, match=text):
        make(from_dlpack(aligned(256, np.float16), assumed_align=16), [cutlass.Int32(d) for d in steps])


def verdict(seed: int, device: str) -> str:
    case = DrawnCopy(seed, ways=True)
    try:
        found = case.run(device)
    except Exception as error:
        return f"wrong: {case} ends in {error!r}"
    return f"{found} ({case})" if found.startswith("wrong") else found.partition(":")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser, devices=True)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for _, found in in_processes(options, partial(verdict, device=options.device)):
        counts[found.partition(":")[0]] += 1
        if found.startswith("wrong"):
            print(found[:600], flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    leave(main())
