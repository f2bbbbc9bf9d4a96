"""Primitives beside those that libraries call: ldmatrix, stmatrix, barrier_cta_red, exit, tensormap_replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.cuda.build import needs_nvrtc
from tilewright import cute, sim
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims
from tilewright.testing import per_thread

BOTH = pytest.mark.parametrize("machine", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])


def run(machine: str, host: Any, out: np.ndarray[Any, Any], *more: Any, align: int = 16) -> np.ndarray[Any, Any]:
    """What ``host(*more, out)`` writes to ``out``."""
    arrays = []
    for x in (*more, out):
        memory = np.zeros(x.nbytes + 128, np.uint8)
        arrays.append(memory[-memory.ctypes.data % 128 :][: x.nbytes].view(x.dtype).reshape(x.shape))
        arrays[-1][...] = x
    if machine == "gpu":
        torch = pytest.importorskip("torch")
        arrays = [torch.from_numpy(x).cuda() for x in arrays]
    host(*(from_dlpack(x, assumed_align=align) for x in arrays))
    found = arrays[-1]
    return found.cpu().numpy() if machine == "gpu" else found


def through(num: int, layout: Any, load: dict[str, Any], store: dict[str, Any] | None) -> Any:
    """A host function: rows of 16 bytes of x to registers, which go to ``words [lane, word]``; with ``store`` back to
    rows, which go there instead."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        rows = cutlass.Array(cutlass.Int32, 128, space=cutlass.AddressSpace.smem, alignment=128)
        back = cutlass.Array(cutlass.Int32, 128, space=cutlass.AddressSpace.smem, alignment=128)
        for i in cutlass.range_constexpr(4):
            rows[4 * t + i] = x[4 * t + i]
            back[4 * t + i] = cutlass.Int32(0)
        cute.arch.sync_warp()
        words = prims.ldmatrix(rows.data_ptr() + 4 * t, num, layout, **load)
        if cutlass.const_expr(store is None):
            for i in cutlass.range_constexpr(num):
                out[num * t + i] = words[i]
        else:
            prims.stmatrix(back.data_ptr() + 4 * t, words, layout, **store)
            cute.arch.sync_warp()
            for i in cutlass.range_constexpr(4):
                out[4 * t + i] = back[4 * t + i]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return host


ROWS = (np.arange(512) * 37 % 251).astype(np.uint8)


@BOTH
@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_matrices_of_16_bits(num: int, layout: str, machine: str) -> None:
    x, cells = ROWS.view(np.int32), ROWS.view(np.uint16).reshape(4, 8, 8)[:num]
    if layout == "col":
        cells = cells.swapaxes(1, 2)
    # Lane l holds the two neighbours at row l / 4, columns 2 (l % 4) and the next, of each matrix.
    want = np.ascontiguousarray(cells.reshape(num, 32, 2).swapaxes(0, 1)).view(np.int32)
    words = run(machine, through(num, layout, {}, None), np.zeros(32 * num, np.int32), x)
    np.testing.assert_array_equal(words.reshape(32, num), want.reshape(32, num))
    rows = run(machine, through(num, layout, {}, {}), np.zeros(128, np.int32), x)
    np.testing.assert_array_equal(rows[: 32 * num], x[: 32 * num])
    assert not rows[32 * num :].any()


@pytest.mark.parametrize("num", [2, 4])
def test_matrices_of_8_bits(num: int) -> None:
    """``m16n16`` transposes: word w of lane l has rows 4 (l % 4) + 2 w and the next, at columns l / 4 and 8 more."""
    x, cells = ROWS.view(np.int32), ROWS.reshape(2, 16, 16)[: num // 2]
    lane, matrix, word, byte = np.ogrid[:32, : num // 2, :2, :4]
    with sim.options(arch="sm_100a"):
        words = run("cpu", through(num, "col", {"shape": "m16n16"}, None), np.zeros(32 * num, np.int32), x)
        # Stored as matrices of 16 rows of 8 bytes, half of the words' bytes are a matrix each.
        rows = run("cpu", through(num, "col", {"shape": "m16n16"}, {"shape": "m16n8"}), np.zeros(128, np.int32), x)
    found = words.view(np.uint8).reshape(32, num // 2, 2, 4)
    want = cells[matrix, 4 * (lane % 4) + 2 * word + byte % 2, lane // 4 + 8 * (byte // 2)]
    np.testing.assert_array_equal(found, want)
    assert sorted(rows.view(np.uint8)[: 128 * num]) == sorted(ROWS[: 128 * num])


@pytest.mark.parametrize(("width", "source"), [(4, "B4X16_P64"), (6, "B6X16_P32")])
def test_numbers_of_4_and_6_bits_become_bytes(width: int, source: str) -> None:
    """A row of 16 packed numbers loads as the row of their bytes does."""
    numbers = ROWS.reshape(32, 16) % (1 << width)
    bits = (numbers[..., None] >> np.arange(width) & 1).astype(np.uint8).reshape(32, -1)
    packed = np.zeros((32, 16), np.uint8)
    packed[:, : 2 * width] = np.packbits(bits, axis=1, bitorder="little")
    with sim.options(arch="sm_120a"):
        for num, shape, layout in ((4, "m16n16", "col"), (2, "m16n16", "col"), (4, "m8n16", "row")):
            formats = {"shape": shape, "src_format": prims.LoadSrcFormat[source]}
            words = run(
                "cpu",
                through(num, layout, formats, None),
                np.zeros(32 * num, np.int32),
                packed.reshape(-1).view(np.int32),
            )
            plain = {"shape": "m16n16"} if shape == "m16n16" else {}  # bytes in rows are pairs in cells of 16 bits
            want = run(
                "cpu",
                through(num, layout, plain, None),
                np.zeros(32 * num, np.int32),
                numbers.reshape(-1).view(np.int32),
            )
            np.testing.assert_array_equal(words, want)


@pytest.mark.parametrize(
    ("arch", "num", "layout", "shape", "source", "store", "mnemonics"),
    [
        (
            "sm_90a",
            4,
            "col",
            "",
            "",
            "",
            ("ldmatrix.sync.aligned.m8n8.x4.trans", "stmatrix.sync.aligned.m8n8.x4.trans"),
        ),
        ("sm_100a", 4, "col", "m16n16", "", "m16n8", ("m16n16.x2.trans", "m16n8.x4.trans")),
        ("sm_120a", 4, "col", "m16n16", "b4x16_p64", None, ("x2.trans.shared.b8x16.b4x16_p64",)),
        ("sm_120a", 2, "col", "m16n16", "b6x16_p32", None, ("x1.trans.shared.b8x16.b6x16_p32",)),
        ("sm_103a", 4, "row", "m8n16", "b6x16_p32", None, ("m8n16.x4.shared.b8x16.b6x16_p32",)),
    ],
)
def test_matrices_are_assembled(
    arch: str, num: int, layout: str, shape: str, source: str, store: str | None, mnemonics: tuple[str, ...]
) -> None:
    needs_nvrtc()
    from tilewright.cuda import compile as build

    load = ({"shape": shape} if shape else {}) | ({"src_format": source} if source else {})
    back = None if store is None else {"shape": store} if store else {}
    made = cute.compile(through(num, layout, load, back), *(np.zeros(n, np.int32) for n in (128, 128)))
    text = build(made.kernels[0], arch).ptx
    assert all(mnemonic in text for mnemonic in mnemonics), text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num": 3}, "ldmatrix moves 1, 2 or 4 matrices, not num_matrices=3"),
        ({"num": 1, "shape": "m16n16", "layout": "col"}, "two words of each lane: num is 2 or 4, not 1"),
        ({"num": 2, "shape": "m16n16"}, "m16n16 is always transposed"),
        ({"num": 2, "shape": "m8n16", "layout": "col", "src_format": "b4x16_p64"}, "m8n16 is never transposed"),
        ({"num": 2, "shape": "m8n16"}, "m8n16 unpacks: src_format is"),
        ({"num": 2, "src_format": "b8"}, "src_format is for m8n16 and m16n16"),
        ({"num": 2, "shape": "m4n4"}, "'m4n4' is not a LoadShape"),
    ],
)
def test_loads_that_do_not_exist(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        per_thread(lambda t: prims.ldmatrix(cute.arch.alloc_smem(cutlass.Int32, 128, 16), **arguments)[0], 32)


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        ((1, 2, 3), {}, "stmatrix moves 1, 2 or 4 matrices, not num_matrices=3"),
        ((1, 2), {"shape": "m16n8"}, "m16n8 is always transposed"),
        (cutlass.Float16, {}, "takes words of 32 bits, not 2 x Float16"),
    ],
)
def test_stores_that_do_not_exist(values: Any, arguments: dict[str, Any], message: str) -> None:
    def store(t: Any) -> Any:
        given = values if isinstance(values, tuple) else cutlass.Vector.from_elements((values(1), values(2)), values)
        prims.stmatrix(cute.arch.alloc_smem(cutlass.Int32, 128, 16), given, **arguments)
        return t

    with pytest.raises(ConstraintError, match=message):
        per_thread(store, 32)


# -- barriers ----------------------------------------------------------------------------------------------------------


def counted(threads: int, count: int, mixed: bool = False) -> Any:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        for turn in range(5):
            if t < count:
                some = prims.barrier_cta_red(t == turn, barrier_id=1, kind="or", thread_count=count)
                every = prims.barrier_cta_red(t < count - turn, barrier_id=2, kind="and", thread_count=count)
                if cutlass.const_expr(mixed):
                    if t < 32:
                        cute.arch.barrier_arrive(barrier_id=3, number_of_threads=count + 32)
                held = prims.barrier_cta_red(
                    t % (turn + 1) == 0, barrier_id=3, kind="popc", thread_count=count + 32 * int(mixed)
                )
                out[t, turn] = held + 1000 * cutlass.Int32(some) + 2000 * cutlass.Int32(every)

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    return host


@BOTH
@pytest.mark.parametrize(("threads", "count"), [(96, 96), (160, 64)])
def test_threads_that_meet_count_a_predicate(threads: int, count: int, machine: str) -> None:
    found = run(machine, counted(threads, count), np.zeros((threads, 5), np.int32))
    for turn in range(5):
        want = -(-count // (turn + 1)) + 1000 + 2000 * (turn == 0)
        assert (found[:count, turn] == want).all() and not found[count:].any()


def test_a_barrier_that_some_only_arrive_at() -> None:
    with pytest.raises(SimulationError, match="64 of the 96 threads gave a predicate at this barrier"):
        run("cpu", counted(64, 64, mixed=True), np.zeros((64, 5), np.int32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "xor"}, "no bar.red.xor; the kinds are and, or, popc"),
        ({"thread_count": 33, "barrier_id": 1}, "33 threads; a barrier counts whole warps"),
        ({"barrier_id": 16, "thread_count": 32}, "barrier 16 does not exist"),
    ],
)
def test_barriers_that_do_not_exist(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        per_thread(lambda t: (prims.barrier_cta_red(t == 0, **arguments), t)[1], 32)


def leaving(late: bool, cluster: int) -> Any:
    """Of four warps the last two end, ``late``: when the others wait for them already; these exchange numbers."""

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        held = cutlass.Array(cutlass.Int32, 64, space=cutlass.AddressSpace.smem, alignment=16)
        flag = cutlass.Array(cutlass.Int32, 1, space=cutlass.AddressSpace.smem, alignment=16)
        if t == 0:
            flag[0] = cutlass.Int32(0)
        cute.arch.sync_threads()
        if t >= 64:
            if cutlass.const_expr(late):
                while cute.arch.load(flag.data_ptr(), cutlass.Int32, sem="acquire", scope="cta") == 0:
                    pass
            prims.exit()
        for turn in range(3):
            held[t] = t + turn
            if t == 0:
                cute.arch.store(flag.data_ptr(), cutlass.Int32(1), sem="release", scope="cta")
            cute.arch.sync_threads()
            out[t, turn, block] = held[63 - t]
            cute.arch.sync_threads()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(cluster, 1, 1), block=(128, 1, 1), cluster=(cluster, 1, 1))

    return host


@BOTH
@pytest.mark.parametrize(("late", "cluster"), [(False, 1), (True, 2)])
def test_warps_that_end(late: bool, cluster: int, machine: str) -> None:
    with sim.options(check="all"):
        found = run(machine, leaving(late, cluster), np.zeros((128, 3, cluster), np.int32))
    want = np.zeros((128, 3, cluster), np.int32)
    want[:64] = (63 - np.arange(64)[:, None, None]) + np.arange(3)[:, None]
    np.testing.assert_array_equal(found, want)


def test_threads_that_end_without_their_warp() -> None:
    @cute.jit
    def some(t: Any) -> Any:
        if t > 40:
            prims.exit()
        return t

    with pytest.raises(SimulationError, match=r"exit of only 23 of the warp's threads \(lanes 9-31\)"):
        per_thread(some, 64)


# -- tensor maps -------------------------------------------------------------------------------------------------------


def moved(changes: Callable[[Any, Any], None]) -> Any:
    """A host function that loads the box at (0, 0) of x, whose tensor map ``changes(map, address)`` changes first."""

    @cute.kernel
    def kernel(atom: cute.CopyAtom, x: cute.Tensor, place: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        full = cute.arch.alloc_smem(cutlass.Int64, 1, 8)
        tile = cutlass.Array(cutlass.Float32, 64, space=cutlass.AddressSpace.smem, alignment=128)
        where = cute.recast_ptr(place.iterator, dtype=cutlass.Int64)
        if t == 0:
            cpasync.copy_tensormap(atom, where)
            changes(where, x.iterator)
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        prims.fence_proxy_release("gpu")
        prims.fence_proxy_acquire("gpu", where)
        if t == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
            prims.cp_async_bulk_tensor_shared_cta_global(tile, where, (0, 0), full)
        cute.arch.mbarrier_wait(full, 0)
        out[t] = tile[t]
        out[t + 32] = tile[t + 32]

    @cute.jit
    def host(x: cute.Tensor, place: cute.Tensor, out: cute.Tensor) -> None:
        layout = cute.make_layout((8, 8), stride=(8, 1))
        atom, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (8, 8))
        kernel(atom, x, place, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return host


def _rows(where: Any, x: Any) -> None:
    prims.tensormap_replace(prims.TensormapField.GLOBAL_ADDRESS, where, new_value=cutlass.Int64((x + 64).toint()))
    prims.tensormap_replace("global_dim", where, new_value=cutlass.Int32(5), ord=1)
    prims.tensormap_replace("global_stride", where, new_value=256, ord=0)


@BOTH
def test_a_tensor_map_that_the_kernel_changes(machine: str) -> None:
    x = np.arange(20 * 32, dtype=np.float32).reshape(20, 32)
    found = run(machine, moved(_rows), np.zeros(64, np.float32), x, np.zeros(32, np.int64), align=128)
    want = np.zeros((8, 8), np.float32)
    want[:5] = x[2:12:2, :8]  # from row 2 on, every second of 5
    np.testing.assert_array_equal(found.reshape(8, 8), want)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("swizzle_mode", {}), "SWIZZLE_MODE stays as the tensor map was made; GLOBAL_ADDRESS, GLOBAL_DIM, GLOBAL_S"),
        (("global_dim", {}), "GLOBAL_DIM: ord from 0 to 4 says which"),
        (("global_address", {"ord": 0}), "GLOBAL_ADDRESS: there is one: leave ord out"),
        (("global_stride", {"ord": 4}), "there is no global_stride 4"),
    ],
)
def test_fields_that_cannot_be_set(arguments: Any, message: str) -> None:
    field, more = arguments
    with pytest.raises(ConstraintError, match=message):
        place = cutlass.Int64

        def change(t: Any) -> Any:
            prims.tensormap_replace(field, cute.arch.alloc_smem(place, 16, 128), new_value=16, **more)
            return t

        per_thread(change, 32)
