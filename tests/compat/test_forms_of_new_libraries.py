"""What quack 0.6's GEMMs say of atomics, versions, pointers, tiles and ragged tensors."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import BFloat16, Float32, Int32, Uint32, cute
from tilewright.atoms.tma_engine import _view
from tilewright.cute.runtime import from_dlpack, make_ptr
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.experimental import primitives as prims
from tilewright.ir.tensormap import TensorMap
from tilewright.ir.types import F32
from tilewright.testing import per_thread


@pytest.mark.parametrize(
    ("op", "dtype", "before", "after"),
    [
        ("add", "s32", 5, 33),
        ("add", Int32, 5, 33),
        ("max", "s32", 3, 7),
        ("min", "s32", 3, 0),
        ("or", "b32", 8, 15),
        ("xor", "b32", 1, 1),
        ("inc", "u32", 5, None),
        ("max", "u32", -1, -1),
        ("min", "u32", -1, 0),
    ],
)
def test_reductions_by_the_name_of_their_type(op: str, dtype: Any, before: int, after: int | None) -> None:
    """Eight threads bring 0 to 7."""

    def use(t: Any, p: Any) -> Any:
        cute.arch.red(p, t if op != "inc" else 100, op=op, dtype=dtype, sem="release", scope="gpu")
        return t

    assert per_thread(use, 8, memory=[before])[1] == [before + 8 if after is None else after]


def test_a_reduction_of_several_numbers() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        four = cute.make_rmem_tensor(4, Float32)
        for i in cutlass.range_constexpr(4):
            four[i] = Float32(t) + i
        cute.arch.red(out.iterator, four.load().ir_value(), op="add", dtype="f32", sem="relaxed", scope="gpu")
        cute.arch.red(out.iterator + 4, four.load(), op="add", dtype=Float32)

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(8, 1, 1))

    out = np.zeros(8, np.float32)
    host(out)
    assert out.tolist() == [28 + 8 * i for i in range(4)] * 2
    (staged,) = cute.compile(host, out).kernels
    assert cutlass.cuda.compile(staged, "sm_90a").spills == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [({"op": "sub"}, "op='sub'; add, min, max"), ({"dtype": "f8"}, "dtype='f8'; a numeric class or s32")],
)
def test_reductions_that_are_not(change: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        per_thread(lambda t, p: (cute.arch.red(p, t, **{"op": "add", "dtype": "s32", **change}), t)[1], 1, memory=[0])


def test_atomic_result_has_the_operand_type() -> None:
    def use(t: Any, p: Any) -> Any:
        old = prims.atomicrmw(prims.AtomicOp.INC, p.llvm_ptr, Int32(100))
        assert type(old) is Int32
        assert type(prims.atomicrmw(prims.AtomicOp.MIN, p.llvm_ptr, Uint32(0xFFFFFFFF))) is Uint32
        return old

    assert sorted(per_thread(use, 4, memory=[0])[0])[0] == 0


def test_names_for_annotations() -> None:
    typing = importlib.import_module("tilewright.cute.typing")
    assert typing.T.f32() == F32 and isinstance(Float32, typing.NumericMeta)


def test_versions_of_cuda() -> None:
    here = f"{cutlass.CUDA_VERSION.major}.{cutlass.CUDA_VERSION.minor}"
    assert cutlass.target_version(here) and cutlass.target_version(min_version=here, max_version=here)
    assert not cutlass.target_version(min_version="99.0") and not cutlass.target_version("9.2")
    with pytest.raises(ArgumentError, match="give an exact version"):
        cutlass.target_version()


def test_an_address_where_a_pointer_was_compiled() -> None:
    @cute.kernel
    def kernel(p: cute.Pointer, x: cute.Tensor) -> None:
        x[0] = p[0] * 2

    @cute.jit
    def host(p: cute.Pointer, x: cute.Tensor) -> None:
        kernel(p, x).launch(grid=1, block=1)

    numbers, x = np.array([3, 4], np.int32), np.zeros(1, np.int32)
    compiled = cute.compile(host, make_ptr(Int32, numbers.ctypes.data, cute.AddressSpace.gmem, 4), from_dlpack(x))
    cutlass.sim.expose(numbers)
    compiled(numbers.ctypes.data + 4, from_dlpack(x))
    cutlass.sim.conceal(numbers)
    assert x.tolist() == [8]
    with pytest.raises(ArgumentError, match="an address that is a multiple of 4 bytes"):
        compiled(numbers.ctypes.data + 2, from_dlpack(x))
    with pytest.raises(ArgumentError, match="expected HostPointer"):
        compiled(2.0, from_dlpack(x))


def test_the_tile_of_a_copy_is_of_layouts() -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), BFloat16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
    assert [mode.shape for mode in copy.tiler_mn] == [16, 64] and copy.get_slice(0).tiler_mn == copy.tiler_mn
    assert cute.make_tiled_copy(atom, copy.layout_tv_tiled, copy.tiler_mn) == copy
    assert [cute.size(mode) for mode in copy.tiler_mn] == [16, 64]


def test_addresses_of_tensor_maps_go_around() -> None:
    """A map of a ragged tensor counts its rows from one end of a mode whose last step comes back to the address 0."""
    seen: list[int] = []
    lanes: Any = SimpleNamespace(global_bytes=lambda address, *_: seen.append(address))
    ragged = TensorMap(0x1000, F32, (16, 1 << 30), (1 << 35,), (4, 1))
    _view(lanes, ragged, (8, 1 << 29), [0, 0], [4, 1], False)
    assert seen == [0x1000 + 8 * 4]
