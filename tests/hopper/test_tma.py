"""TMA on both machines against the arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.golden import DATA, HANDLERS, check, read
from tests.hopper.tma_programs import Bulk, Grouped, Multicast, OfMma, Reduce, Through
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import Int32, cute, utils
from tilewright.atoms.names import mma_by_name
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.nvgpu.warpgroup import SmemLayoutAtomKind, make_smem_layout_atom
from tilewright.errors import ConstraintError
from tilewright.layout import make_smem_atom, tile_to_shape

import tests.golden_tma  # isort: skip  # noqa: F401 - registers its handlers

RNG = np.random.default_rng(4)
OPS = ("tma_copy", "tma_partition", "tma_reject", "multicast_mask")


def test_the_golden_lines_of_tma() -> None:
    lines = [line for line in read(DATA / "hopper.jsonl") if line["op"] in OPS]
    assert len(lines) == 302
    assert set(OPS) <= HANDLERS.keys()
    # C++ leaves modes of stride 0 out of the coordinates: what is past the end of one is copied there, not zero.
    (other,) = [line["args"] for line in lines if check(line)]
    assert (other["gmem"], other["cta_tiler"]) == ("(40,64):(0,1)", "(16,16)")


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
    kind: str,
    major: str,
    swizzle: str,
    tile: tuple[int, int],
    shape: tuple[int, int],
    ways: tuple[str, str],
    machine: str,
) -> None:
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
@pytest.mark.parametrize("ways", [("tma", "threads"), ("threads", "tma")], ids="-".join)
@pytest.mark.parametrize(
    ("kind", "atom", "tile"),
    [
        ("f16", "K_SW128", (32, 64)),
        ("f16", "MN_SW64", (64, 16)),
        ("f32", "K_SW128", (16, 64)),
        ("i8", "K_SW32", (8, 32)),
    ],
)
def test_layouts_with_swizzles_of_byte_addresses(
    kind: str, atom: str, tile: tuple[int, int], ways: tuple[str, str], machine: str
) -> None:
    """As make_smem_layout_atom gives them, allocated by their two parts."""
    a = numbers(tile if atom[0] == "K" else tile[::-1], kind)
    arrays = Arrays(machine, a, np.zeros_like(a))
    views = [cute.runtime.from_dlpack(x if atom[0] == "K" else x.T, assumed_align=16) for x in arrays.device]
    layout = make_smem_layout_atom(SmemLayoutAtomKind[atom], views[0].element_type)
    staged = cute.tile_to_shape(layout, tile, (0, 1) if atom[0] == "K" else (1, 0))
    assert staged.inner.base == 4
    Through(tile, staged, ways, in_bytes=True)(*views)
    np.testing.assert_array_equal(arrays.back(1), a)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", [(100, 136), (1, 8), (129, 200), (64, 128)])
def test_ragged_edges_are_zero_filled_and_clipped(shape: tuple[int, int], machine: str) -> None:
    a = numbers(shape, "f16")
    arrays = Arrays(machine, a, np.full_like(a, 7))
    views = [x.mark_layout_dynamic(leading_dim=1) for x in arrays.tensors()]
    Through((64, 128), smem("K", "SW128", "f16", (64, 128)))(*views)
    np.testing.assert_array_equal(arrays.back(1), a)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((1000,), (256,)),
        ((20, 24), (8, 16)),
        ((6, 9, 40), (2, 4, 16)),
        ((3, 5, 6, 16), (2, 2, 3, 8)),
        ((2, 3, 4, 5, 24), (2, 1, 2, 2, 8)),
        ((2, 3, 2, 2, 3, 16), (1, 2, 1, 1, 2, 8)),
    ],
)
def test_tensors_of_one_to_six_modes(shape: tuple[int, ...], tile: tuple[int, ...], machine: str) -> None:
    """Row-major; of six modes the last two share a TMA mode, whose step is known at the launch only."""
    a = numbers(shape, "f32")
    arrays = Arrays(machine, a, np.zeros_like(a))
    views = [x.mark_layout_dynamic(leading_dim=len(shape) - 1) for x in arrays.tensors()]
    layout = cute.make_ordered_layout(tile, tuple(reversed(range(len(tile)))))
    Through(tile, layout)(*views)
    np.testing.assert_array_equal(arrays.back(1), a)


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("f16", "add"),
        ("bf16", "add"),
        ("f32", "add"),
        ("i32", "add"),
        ("f16", "min"),
        ("bf16", "max"),
        ("i32", "min"),
        ("i32", "max"),
        ("i32", "and"),
        ("i32", "or"),
        ("i32", "xor"),
        ("i64", "add"),
        ("i64", "and"),
        ("i64", "max"),
    ],
)
def test_reductions(kind: str, name: str, machine: str) -> None:
    out, given = numbers((6, 16), kind), numbers((5, 8 * 16), kind)
    want = out.astype(np.float64) if kind[0] != "i" else out.copy()
    for tile in given.reshape(5, 16, 8).transpose(0, 2, 1)[:, :6]:  # what lies outside the tensor is left out
        want = REDUCTIONS[name](want, tile.astype(want.dtype))
    arrays = Arrays(machine, out, given)
    Reduce((8, 16), cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp[name.upper()]))(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(0).astype(want.dtype), want)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("kind", "name", "extent", "changed"), [("i32", "add", 5, 8), ("f16", "min", 9, 16), ("i64", "max", 3, 4)]
)
def test_reductions_combine_whole_chunks_of_16_bytes(
    kind: str, name: str, extent: int, changed: int, machine: str
) -> None:
    """Also what is behind the end of a row within its last one; the next one is left alone."""
    out, given = numbers((6, 24), kind), numbers((1, 8 * 16), kind)
    want, tile = out.copy(), given.reshape(16, 8).T
    want[:, :changed] = REDUCTIONS[name](want, np.pad(tile[:6], ((0, 0), (0, 8))))[:, :changed]
    arrays = Arrays(machine, out, given)
    op = cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp[name.upper()])
    Reduce((8, 16), op)(*arrays.tensors(), (6, extent))
    np.testing.assert_array_equal(arrays.back(0), want)


@pytest.mark.parametrize("name", ["inc", "dec"])
def test_increments_wrap(name: str) -> None:
    out = np.array([[0, 1, 3, 4, 5, 9, 10, 11]], np.uint32)
    given = np.full((1, 8), 10, np.uint32)
    want = {"inc": [1, 2, 4, 5, 6, 10, 0, 0], "dec": [10, 0, 2, 3, 4, 8, 9, 10]}[name]
    Reduce((1, 8), cpasync.CopyReduceBulkTensorTileS2GOp(name.upper()))(
        *(cute.runtime.from_dlpack(x, assumed_align=16) for x in (out, given))
    )
    assert out[0].tolist() == want


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("blocks", [1, 2, 4])
@pytest.mark.parametrize(("kind", "swizzle", "tile"), [("f16", "SW128", (32, 64)), ("f32", "SW32", (32, 32))])
def test_multicast(kind: str, swizzle: str, tile: tuple[int, int], blocks: int, machine: str) -> None:
    layout = smem("K", swizzle, kind, tile)
    a = numbers((3 * tile[0], tile[1]), kind)
    arrays = Arrays(machine, a, np.zeros((3 * blocks, tile[0] * tile[1]), a.dtype))
    Multicast(tile, layout, blocks)(*arrays.tensors())
    tiles = a.reshape(3, *tile).transpose(0, 2, 1).reshape(3, -1)  # elements in column-major order
    np.testing.assert_array_equal(arrays.back(1), np.repeat(tiles, blocks, axis=0))


@pytest.mark.parametrize("machine", MACHINES)
def test_atoms_for_the_operands_of_an_mma(machine: str) -> None:
    mma = cute.make_tiled_mma(mma_by_name("SM90_64x32x16_F32F16F16_SS<K,K>"))
    tiler = (128, 32, 64)
    a, b = numbers((128, 64), "f16"), numbers((32, 64), "f16")
    layouts = smem("K", "SW128", "f16", (128, 64)), smem("K", "SW128", "f16", (32, 64))
    arrays = Arrays(machine, a, b, np.zeros(a.size, a.dtype), np.zeros(b.size, b.dtype))
    OfMma(mma, tiler, layouts)(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(2), a.T.reshape(-1))
    np.testing.assert_array_equal(arrays.back(3), b.T.reshape(-1))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", list(utils.TensorMapUpdateMode), ids=lambda mode: mode.name)
def test_tensor_maps_changed_on_the_device(mode: utils.TensorMapUpdateMode, machine: str) -> None:
    shapes = [(40, 64), (16, 8), (33, 200)]
    given = [numbers(shape, "f16") for shape in shapes]
    raw = np.zeros(3 * 16 + 16, np.int64)
    start = -raw.ctypes.data % 128 // 8
    workspace = raw[start : start + 48].reshape(3, 16)
    arrays = Arrays(machine, *given, *(np.zeros_like(x) for x in given), workspace)
    *matrices, space = arrays.tensors()
    matrices = [x.mark_layout_dynamic(leading_dim=1) for x in matrices]
    Grouped((16, 64), mode)(matrices[:3], matrices[3:], cute.runtime.from_dlpack(arrays.device[-1], assumed_align=128))
    for k in range(3):
        np.testing.assert_array_equal(arrays.back(3 + k), given[k])


def test_a_map_may_be_changed_for_strides_that_only_the_launch_knows() -> None:
    """The contiguous mode's, too."""

    @cute.jit
    def run(given: cute.Tensor, out: cute.Tensor, space: cute.Tensor, n: Int32, one: Int32):
        layout = cute.make_layout((n, n), stride=(n, one))
        given, out = (cute.make_tensor(x.iterator, layout) for x in (given, out))
        Grouped((16, 64), utils.TensorMapUpdateMode.GMEM)([given], [out], space)

    given = numbers((64, 64), "f16")
    arrays = Arrays("cpu", given, np.zeros_like(given))
    raw = np.zeros(32, np.int64)
    space = raw[-raw.ctypes.data % 128 // 8 :][:16].reshape(1, 16)
    run(*arrays.tensors(), cute.runtime.from_dlpack(space, assumed_align=128), 64, 1)
    np.testing.assert_array_equal(arrays.back(1), given)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["f32", "f16", "i8"])
def test_bulk_copies(kind: str, machine: str) -> None:
    a = numbers((6, 1024), kind)
    arrays = Arrays(machine, a, np.zeros_like(a))
    Bulk()(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(1), a)


@pytest.mark.parametrize("machine", MACHINES)
def test_bulk_multicast(machine: str) -> None:
    a = numbers((6, 256), "f32")
    arrays = Arrays(machine, a, np.zeros_like(a))
    Bulk(multicast=True)(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(1), np.repeat(a[::2], 2, axis=0))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [("f16", "add"), ("bf16", "add"), ("f32", "add"), ("f64", "add"), ("i32", "min"), ("f16", "max"), ("i32", "xor")],
)
def test_bulk_reductions(kind: str, name: str, machine: str) -> None:
    a, out = numbers((3, 64), kind), numbers((3, 64), kind)
    wide = np.int32 if kind == "i32" else np.float64
    want = REDUCTIONS[name](out.astype(wide), a.astype(wide))
    arrays = Arrays(machine, a, out)
    Bulk(cpasync.CopyReduceBulkS2GOp(name.upper()))(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(1).astype(wide), want)


@pytest.mark.parametrize(
    ("text", "shape", "op"),
    [
        ("a bulk copy takes whole multiples of 16 contiguous bytes", (2, 3), None),
        ("the source must be 16-byte aligned", (2, 9), None),
        ("no bulk reduction by 'inc' of f32", (2, 64), cpasync.CopyReduceBulkS2GOp("INC")),
    ],
)
def test_bulk_copies_that_do_not_exist(text: str, shape: tuple[int, int], op: Any) -> None:
    a = np.zeros((shape[0], 12), np.float32)[:, : shape[1]] if shape[1] < 12 else np.zeros(shape, np.float32)
    if shape[1] == 9:
        a = np.zeros((2, 9), np.float32)[:, :8]
    with pytest.raises(ConstraintError, match=text):
        Bulk(op)(*(cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, a.copy())))
