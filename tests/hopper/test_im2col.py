"""TMA copies of pixels of images (``im2col``), against a search pixel by pixel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.experimental.cuda as cuda
from tests.blackwell.test_scaled import aligned
from tests.cuda.build import needs_nvrtc
from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims
from tilewright.ir.tensormap import Im2col, TensorMap
from tilewright.ir.types import F16


class Copy(NamedTuple):
    """A copy: ``at`` the coordinates and ``offsets`` as TMA counts them (C, W, H, D, N)."""

    shape: tuple[int, ...]  # N, H, W, C
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    at: tuple[int, ...]
    offsets: tuple[int, ...]
    steps: tuple[int, ...] = ()
    channels: int = 8
    pixels: int = 16
    waits: bool = True
    mode: Any = "im2col"
    tiled: bool = False


PTX = Copy((64, 14, 9, 64), (-1, -1), (-1, -1), (8, 7, 4, 7), (0, 0), pixels=64)
"""PTX's first example, which begins at W = 7, H = 4 of image 7."""


def map_of(how: Copy, x: Any) -> Any:
    if how.tiled:
        order = tuple(reversed(range(len(how.shape))))
        box = (*(1,) * (len(how.shape) - 1), how.channels)
        return cuda.create_tensor_map_tiled_from_view(x, box_dims=box, stride_order=order)
    return cuda.create_tensor_map_im2col(
        x,
        pixel_box_lower_corner=how.lower,
        pixel_box_upper_corner=how.upper,
        element_strides=how.steps or None,
        channels_per_pixel=how.channels,
        pixels_per_column=how.pixels,
    )


def copying(how: Copy) -> Any:
    """A host function that brings a copy's pixels to shared memory and from there to z."""

    @cute.kernel
    def kernel(load: Any, z: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        full = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem, alignment=8)
        count = how.pixels * how.channels
        tile = cutlass.Array(cutlass.Float16, count, space=cutlass.AddressSpace.smem, alignment=1024)
        if t == 0:
            prims.mbarrier_init(full, 1)
            prims.fence_mbarrier_init()
            prims.mbarrier_arrive_expect_tx(full, 2 * count)
            prims.cp_async_bulk_tensor_shared_cta_global(tile, load.get_ptr(), how.at, full, how.offsets, mode=how.mode)
        cute.arch.sync_threads()
        if cutlass.const_expr(how.waits):
            while not prims.mbarrier_try_wait_parity(full, 0):
                pass
        for i in range(t, count, 32):
            z[i] = tile[i]

    @cute.jit
    def host(x: cute.Tensor, z: cute.Tensor) -> None:
        kernel(map_of(how, x), z).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return host


def images(how: Copy) -> tuple[Any, Any]:
    size = int(np.prod(how.shape))
    return aligned((np.arange(size) % 1999 + 1).astype(np.float16).reshape(how.shape)), np.zeros(
        how.pixels * how.channels, np.float16
    )


def run(how: Copy) -> tuple[Any, Any]:
    x, z = images(how)
    with sim.options(check="all", arch="sm_90a"):
        copying(how)(from_dlpack(x, assumed_align=16), from_dlpack(z))
    return x, z.reshape(how.pixels, how.channels)


def pixels(how: Copy, x: Any) -> Any:
    """What the copy brings: all places where a filter may begin, in order, from that of the coordinates on."""
    steps = (*(how.steps or (1,) * len(how.lower)), 1)
    spatial = how.shape[1:-1]
    ends = (*(n + upper for n, upper in zip(reversed(spatial), how.upper, strict=True)), how.shape[0])
    begins = (*how.lower, 0)

    def places(mode: int, first: bool) -> Iterator[tuple[int, ...]]:
        """Those of the modes up to ``mode``; the ``first`` run along each starts where the coordinate says, even
        between two steps, later ones at the corner."""
        if mode < 0:
            yield ()
            return
        start = how.at[1 + mode] if first else begins[mode]
        for x in range(start, ends[mode], steps[mode]):
            for inner in places(mode - 1, first and x == start):
                yield (x, *inner)

    out = np.zeros((how.pixels, how.channels))
    for row, place in zip(out, places(len(spatial), True), strict=False):
        where = [p + o for p, o in zip(place[1:], reversed(how.offsets), strict=True)]
        if all(0 <= p < n for p, n in zip(where, spatial, strict=True)):
            for c in range(how.channels):
                if 0 <= how.at[0] + c < how.shape[-1]:
                    row[c] = x[(place[0], *where, how.at[0] + c)]
    return out


COPIES = [
    PTX,
    Copy((64, 14, 9, 64), (0, 0), (-2, -2), (0, 6, 4, 7), (2, 2), pixels=64),  # the second, which begins in the box
    Copy((64, 14, 8, 64), (-1, -1), (-1, -1), (16, 5, 7, 7), (1, 1), (2, 2), channels=16, pixels=32),
    Copy((3, 5, 7, 24), (-2, -1), (1, 0), (16, -2, -1, 0), (0, 3), channels=16, pixels=40),
    Copy((3, 5, 7, 8), (-1, -1), (-1, -1), (0, 4, 3, 2), (2, 1), pixels=24),  # past the last image
    Copy((2, 30, 16), (-3,), (0,), (8, -1, 0), (5,), (3,), pixels=20),
    Copy((2, 3, 4, 5, 8), (-1, 0, -1), (0, 0, -1), (0, -1, 1, 0, 0), (1, 0, 2), pixels=50),
    Copy((2, 6, 6, 8), (-1, -1), (-1, -1), (0, -1, -1, 1), (2, 2), (2, 3), pixels=8),
    Copy((2, 8, 7, 8), (0, 0), (0, 0), (0, 4, 5, 0), (0, 0), (3, 2), pixels=12),  # between steps of both
]


@pytest.mark.parametrize("how", COPIES, ids=str)
def test_the_pixels_of_a_copy(how: Copy) -> None:
    x, z = run(how)
    np.testing.assert_array_equal(z, pixels(how, x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": (0, 8, 4, 7)}, "begins at W = 8, and the tensor map's pixels go from -1 to 7"),
        ({"at": (0, 7, -2, 7)}, "begins at H = -2, and the tensor map's pixels go from -1 to 12"),
        ({"offsets": (0, 256)}, "the offset along H is 256; of 4 modes it is 0 to 255"),
        ({"at": (0, 7, 4), "offsets": (0,)}, "the tensor map has 4 modes, and the copy is an im2col copy of 3"),
        ({"offsets": (0,)}, "has an offset for each mode between the channels and the images, 2, not 1"),
        ({"mode": "tile", "offsets": ()}, "tma.load.4d at .*: the tensor map is for im2col copies"),
        ({"mode": "tile"}, 'im2col_offsets are for mode="im2col"'),
        ({"tiled": True}, "the tensor map is for copies of tiles, and the copy is an im2col copy of 4 coordinates"),
        ({"at": (4, 7, 4, 7)}, "no multiple of 16: the hardware stops"),
        ({"waits": False}, "race"),
        ({"lower": (-129, 0)}, "lower corner has 2 numbers from -128 to 127"),
        ({"steps": (9, 1)}, "element_strides has 2 numbers from 1 to 8"),
        ({"channels": 12}, "12 channels are 24 bytes; they are a multiple of 16"),
        ({"pixels": 1025}, "1 to 256 channels of 1 to 1024 pixels, not 8 of 1025"),
        ({"shape": (4, 64)}, "images have 3 to 5 modes"),
    ],
)
def test_mistakes(change: Any, message: str) -> None:
    with pytest.raises((ConstraintError, SimulationError), match=message):
        run(PTX._replace(**change))


def test_a_tensor_map_in_memory_is_the_same() -> None:
    made = TensorMap(0x1000, F16, (64, 9, 14, 2), (128, 1152, 16128), (8, 64), 1, Im2col((-1, -7), (3, -2), (1, 2)))
    found = TensorMap.of_image(made.image())
    assert found is not None and repr(found) == repr(made) and found.im2col == made.im2col
    assert made.im2col is not None and made.im2col.pixels(made.dims) == (13, 10)


def storing(how: Copy, reduction: str = "", waits: bool = True) -> Any:
    """A host function that stores the numbers of x, a row for each pixel, to a copy's pixels of z."""

    @cute.kernel
    def kernel(store: Any, x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        count = how.pixels * how.channels
        tile = cutlass.Array(cutlass.Float16, count, space=cutlass.AddressSpace.smem, alignment=1024)
        for i in range(t, count, 32):
            tile[i] = x[i]
        prims.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            if cutlass.const_expr(reduction):
                prims.cp_async_bulk_tensor_reduce(store.get_ptr(), tile, reduction, how.at, mode=how.mode)
            else:
                prims.cp_async_bulk_tensor_global_shared_cta(store.get_ptr(), tile, how.at, mode=how.mode)
            prims.cp_async_bulk_commit_group()
            if cutlass.const_expr(waits):
                prims.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(x: cute.Tensor, z: cute.Tensor) -> None:
        kernel(map_of(how, z), x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return host


def stored(how: Copy, reduction: str) -> tuple[Any, Any, Any]:
    """Numbers to store, images, and what the images are afterwards."""
    x = (np.arange(how.pixels * how.channels) % 1024 + 1).astype(np.float16)
    z = aligned(np.full(how.shape, 3, np.float16))
    numbered = np.arange(1, z.size + 1).reshape(how.shape)
    where = pixels(how, numbered).astype(np.int64).reshape(-1)
    expected = z.reshape(-1).copy()
    into, values = where[where > 0] - 1, x[where > 0]
    expected[into] = {"": values, "add": expected[into] + values, "max": np.maximum(expected[into], values)}[reduction]
    return x, z, expected.reshape(how.shape)


def inside(how: Copy) -> Copy:
    """The same within the images, as stores are."""
    lower, upper = (tuple(max(0, x) for x in how.lower), tuple(min(0, x) for x in how.upper))
    at = (how.at[0], *(max(n, x) for x, n in zip(how.at[1:], lower, strict=False)), how.at[-1])
    return how._replace(offsets=(0,) * len(how.offsets), lower=lower, upper=upper, at=at)


STORES = [*map(inside, COPIES), Copy((5, 7, 9, 32), (1, 2), (-2, -1), (8, 3, 4, 1), (0, 0), (2, 1), 16, 20)]
REDUCTIONS = [(STORES[3], "add"), (STORES[6], "max"), (STORES[9], "add")]


@pytest.mark.parametrize(("how", "reduction"), [*((how, "") for how in STORES), *REDUCTIONS])
def test_stores(how: Copy, reduction: str) -> None:
    x, z, expected = stored(how, reduction)
    with sim.options(check="all", arch="sm_90a"):
        storing(how, reduction)(from_dlpack(x), from_dlpack(z, assumed_align=16))
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize("reduction", ["", "add"])
def test_stores_of_whole_chunks_of_16_bytes(reduction: str) -> None:
    """What is behind the channels of a pixel within their last chunk is written, too, as by stores of tiles."""
    how = Copy((2, 4, 8, 9), (0, 0), (0, 0), (0, 1, 1, 0), (0, 0), channels=24)
    x = (np.arange(how.pixels * how.channels) % 100 + 10).astype(np.float16)
    z = aligned(np.full((2, 4, 8, 24), 3, np.float16))
    with sim.options(check="all", arch="sm_90a"):
        storing(how, reduction)(from_dlpack(x), from_dlpack(z[..., :9], assumed_align=16))
    pixel = np.where(np.arange(24) < 16, x[:24] + (3 if reduction else 0), 3)
    np.testing.assert_array_equal(z[0, 1, 1], pixel)


@pytest.mark.parametrize(
    ("change", "waits", "message"),
    [
        ({"at": (0, 8, 4, 7)}, True, "begins at W = 8, and the tensor map's pixels go from 0 to 7"),
        ({"lower": (0, -1)}, True, "store.4d at .*: the tensor map has the lower corner -1 along H, and a store's pix"),
        ({"lower": (-2, 0), "upper": (1, -1)}, True, "the lower corner -2 along W and the upper corner 1 along W, and"),
        ({"at": (0, 7, 4)}, True, "the tensor map has 4 modes, and the copy is an im2col copy of 3"),
        ({"at": (0, 7)}, True, "an im2col copy takes 3 to 5 coordinates"),
        ({"at": (-8, 7, 4, 7)}, True, "the box begins at .-8, 7, 4, 7, 0, 0., before the tensor"),
        ({"at": (8, 7, 4, -1)}, True, "before the tensor"),
        ({"mode": "tile"}, True, "tma.store.4d at .*: the tensor map is for im2col copies"),
        ({}, False, "bulk"),
    ],
)
def test_mistakes_of_stores(change: Any, waits: bool, message: str) -> None:
    x, z, _ = stored(STORES[0], "")
    with pytest.raises((ConstraintError, SimulationError), match=message), sim.options(check="all", arch="sm_90a"):
        storing(STORES[0]._replace(**change), waits=waits)(from_dlpack(x), from_dlpack(z, assumed_align=16))


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
def test_the_text_is_assembled(arch: str) -> None:
    needs_nvrtc()
    from tilewright.cuda import compile as build

    for how in (PTX, COPIES[5], COPIES[6]):
        x, z = images(how)
        kernel = cute.compile(copying(how), from_dlpack(x, assumed_align=16), from_dlpack(z)).kernels[0]
        assert re.search(r"cp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global\.im2col\.", build(kernel, arch).ptx)
    for reduction, name in (("", "cp.async"), ("add", "cp.reduce.async")):
        x, z, _ = stored(STORES[5], reduction)
        arguments = from_dlpack(x), from_dlpack(z, assumed_align=16)
        kernel = cute.compile(storing(STORES[5], reduction), *arguments).kernels[0]
        text = build(kernel, arch).ptx
        assert re.search(rf"{name}\.bulk\.tensor\.3d\.global\.shared::cta\.(add\.)?im2col_no_offs\.", text), text


@pytest.mark.gpu
@pytest.mark.parametrize("how", COPIES, ids=str)
def test_on_a_gpu(how: Copy) -> None:
    torch = pytest.importorskip("torch")
    x, z = (torch.from_numpy(a.copy()).cuda() for a in images(how))
    copying(how)(from_dlpack(x, assumed_align=16), from_dlpack(z))
    np.testing.assert_array_equal(z.cpu().numpy().reshape(how.pixels, how.channels), pixels(how, x.cpu().numpy()))


def store_on_a_gpu(torch: Any) -> None:
    for how, reduction in [*((how, "") for how in STORES), *REDUCTIONS]:
        given, images_of, expected = stored(how, reduction)
        x, z = (torch.from_numpy(a.copy()).cuda() for a in (given, images_of))
        storing(how, reduction)(from_dlpack(x), from_dlpack(z, assumed_align=16))
        np.testing.assert_array_equal(z.cpu().numpy(), expected, err_msg=str(how))


@pytest.mark.gpu
def test_stores_on_a_gpu() -> None:
    """In a process of their own: one that the GPU refuses takes the CUDA context with it."""
    pytest.importorskip("torch")
    code = "import torch\nfrom tests.hopper.test_im2col import store_on_a_gpu as run\nrun(torch)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
