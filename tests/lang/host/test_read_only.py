"""Arrays that their owner does not let be written: kernels may read them, and are refused where they would write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError


@cute.kernel
def add_one(x: cute.Tensor, y: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    y[i] = x[i] + 1


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor) -> None:
    add_one(x, y).launch(grid=(1, 1, 1), block=(4, 1, 1))


class OverDlpack:
    """An array that speaks DLPack only; ``versions``: whether it knows DLPack 1."""

    def __init__(self, array: np.ndarray, versions: bool = True) -> None:
        self.array, self.versions = array, versions
        self.ndim, self.shape, self.dtype = array.ndim, array.shape, array.dtype

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.versions:
            raise TypeError("no keywords")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def locked() -> np.ndarray:
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    return array


WAYS = [
    lambda a: a,
    from_dlpack,
    OverDlpack,
    lambda a: from_dlpack(OverDlpack(a)),
    lambda a: from_dlpack(a).mark_layout_dynamic(),
    lambda a: a[:],
]


@pytest.mark.parametrize("way", WAYS)
def test_reading_is_allowed_and_writing_is_not(way: Any) -> None:
    array, out = locked(), np.zeros(4, np.float32)
    run(way(array), out)
    assert out.tolist() == [1, 2, 3, 4]
    line = r"test_read_only.py:\d+"
    for _ in range(3):
        with pytest.raises(ArgumentError, match=rf"argument 'y': the array is read-only, and .*{line} writes to it"):
            run(out, way(array))
    assert array.tolist() == [0, 1, 2, 3]


def test_a_compiled_function_that_was_called_with_another_array() -> None:
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    compiled = cute.compile(run, from_dlpack(x), from_dlpack(y))
    kept, good = from_dlpack(locked()), from_dlpack(y)
    for _ in range(2):
        compiled(from_dlpack(x), good)
        with pytest.raises(ArgumentError, match="read-only"):
            compiled(from_dlpack(x), kept)
        compiled(kept, good)


def test_unversioned_dlpack_arrays_are_writable() -> None:
    out = np.zeros(4, np.float32)
    run(OverDlpack(np.arange(4, dtype=np.float32), versions=False), OverDlpack(out, versions=False))
    assert out.tolist() == [1, 2, 3, 4]


def test_tensor_maps_and_hosts_write_too() -> None:
    layout = cute.make_layout((8, 32), stride=(32, 1))

    @cute.kernel
    def store(atom: cute.CopyAtom, tensor: cute.Tensor) -> None:
        shared = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 256, 128), layout)
        t, _, _ = cute.arch.thread_idx()
        for i in range(8):
            shared[i, t] = 1.0
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        ts, tg = cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(shared, 0, 2),
            cute.group_modes(cute.local_tile(tensor, (8, 32), (0, 0)), 0, 2),
        )
        cute.copy(atom, ts, tg)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def by_tma(out: cute.Tensor) -> None:
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, layout, (8, 32))
        store(atom, tensor).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.jit
    def by_host(out: cute.Tensor) -> None:
        out[0, 0] = 1.0

    array = np.zeros((8, 32), np.float32)
    by_tma(from_dlpack(array, assumed_align=16))
    assert (array == 1).all()
    array.flags.writeable = False
    for program in (by_tma, by_host):
        with pytest.raises(ArgumentError, match="argument 'out': the array is read-only"):
            program(from_dlpack(array, assumed_align=16))
