"""TMA on both machines against the arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.golden import DATA, HANDLERS, check, read
from tests.hopper.tma_programs import Through
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import cute
from tilewright.layout import make_smem_atom, tile_to_shape

import tests.golden_tma  # isort: skip  # noqa: F401  (registers its handlers)

RNG = np.random.default_rng(4)
OPS = ("tma_copy", "tma_partition", "tma_reject", "multicast_mask")


def test_the_golden_lines_of_tma() -> None:
    lines = [line for line in read(DATA / "hopper.jsonl") if line["op"] in OPS]
    assert len(lines) == 302
    assert set(OPS) <= HANDLERS.keys()
    assert [problem for line in lines if (problem := check(line))] == []


def numbers(shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    low = 0 if kind[0] == "u" else -8
    return RNG.integers(low, 9, shape).astype(NUMPY[kind])


def smem(major: str, swizzle: str, kind: str, tile: tuple[int, int]) -> Any:
    atom = make_smem_atom(major, swizzle, 8 * np.dtype(NUMPY[kind]).itemsize)
    return tile_to_shape(atom, tile, (0, 1) if major == "K" else (1, 0))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("ways", [("tma", "tma"), ("tma", "threads"), ("threads", "tma")], ids="-".join)
@pytest.mark.parametrize(
    ("kind", "major", "swizzle", "tile", "shape"),
    [
        ("f16", "K", "SW128", (64, 128), (128, 256)),
        ("f16", "MN", "SW128", (128, 32), (256, 64)),
        ("bf16", "K", "SW64", (16, 64), (32, 64)),
        ("f32", "K", "SW32", (8, 16), (16, 32)),
        ("i8", "K", "SW128", (32, 128), (64, 256)),
        ("i32", "MN", "SW32", (16, 16), (48, 16)),
        ("f64", "K", "INTER", (8, 8), (16, 8)),
        ("e4m3", "MN", "INTER", (64, 16), (64, 32)),
        ("u8", "K", "INTER", (32, 32), (64, 32)),
    ],
)
def test_tiles_of_every_swizzle_and_major(
    kind: str, major: str, swizzle: str, tile: tuple[int, int], shape: tuple[int, int], ways: tuple[str, str],
    machine: str,
) -> None:  # fmt: skip
    a = numbers(shape if major == "K" else shape[::-1], kind)
    arrays = Arrays(machine, a, np.zeros_like(a))
    views = arrays.tensors()
    if major == "MN":  # the first mode of the tensor is the contiguous one
        views = [cute.runtime.from_dlpack(x.T, assumed_align=16) for x in arrays.device]
        for view, like in zip(views, arrays.tensors(), strict=True):
            view.element_type = like.element_type
    Through(tile, smem(major, swizzle, kind, tile), ways)(*views)
    np.testing.assert_array_equal(arrays.back(1).astype(np.float64), a.astype(np.float64))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", [(100, 136), (1, 8), (129, 200), (64, 128)])
def test_ragged_edges_are_zero_filled_and_clipped(shape: tuple[int, int], machine: str) -> None:
    a = numbers(shape, "f16")
    arrays = Arrays(machine, a, np.full_like(a, 7))
    views = [x.mark_layout_dynamic(leading_dim=1) for x in arrays.tensors()]
    Through((64, 128), smem("K", "SW128", "f16", (64, 128)))(*views)
    np.testing.assert_array_equal(arrays.back(1), a)
