"""Every mma.sync that the language has numbers for, and the copy kernels, on both machines against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.tiled.test_kernels import Predicated, SharedGemm
from tilewright import Int32, cute
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma import Mma
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.cute.runtime import from_dlpack

MACHINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
EXTENDED = {"bfloat16": "BFloat16", "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2"}
ATOMS = {
    name: atom
    for name, atom in (MMA_SYNC | FMA).items()
    if {atom.type_a.name, atom.type_b.name, atom.type_d.name} <= NUMPY.keys()
}


class OneAtom:
    """C += A B^T by one instruction, repeated twice along M, N and K; one warp."""

    def __init__(self, atom: Mma) -> None:
        self.atom = atom
        threads = cute.size(atom.thr_id)
        self.layout = cute.make_layout({32: (1, 1, 1), 8: (2, 2, 1), 1: (8, 4, 1)}[threads])

    @property
    def tile(self) -> tuple[int, ...]:
        return tuple(2 * x * cute.size(y) for x, y in zip(self.atom.shape_mnk, self.layout, strict=True))

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        self.kernel(mA, mB, mC).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        mma = cute.make_tiled_mma(self.atom, self.layout)
        thread = mma.get_slice(tidx)
        tA, tB, tC = thread.partition_A(mA), thread.partition_B(mB), thread.partition_C(mC)
        rA, rB, rC = thread.make_fragment_A(tA), thread.make_fragment_B(tB), thread.make_fragment_C(tC)
        cute.autovec_copy(tA, rA)
        cute.autovec_copy(tB, rB)
        cute.autovec_copy(tC, rC)
        cute.gemm(mma, rC, rA, rB, rC)
        cute.autovec_copy(rC, tC)


class Arrays:
    """NumPy arrays as arguments of a machine, and back."""

    def __init__(self, machine: str, *arrays: np.ndarray[Any, Any]) -> None:
        self.arrays = arrays
        if machine == "gpu":
            torch = pytest.importorskip("torch")
            raw = [torch.from_numpy(x.view(f"u{x.itemsize}") if x.dtype.name in EXTENDED else x) for x in arrays]
            self.device = [x.cuda() for x in raw]
        else:
            self.device = list(arrays)

    def tensors(self) -> list[Any]:
        made = []
        for x, like in zip(self.device, self.arrays, strict=True):
            tensor = from_dlpack(x, assumed_align=16)
            if like.dtype.name in EXTENDED and x is not like:
                tensor.element_type = getattr(cute, EXTENDED[like.dtype.name])
            made.append(tensor)
        return made

    def back(self, index: int) -> np.ndarray[Any, Any]:
        x = self.device[index]
        return x if x is self.arrays[index] else x.cpu().numpy().view(self.arrays[index].dtype)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", sorted(ATOMS))
def test_every_atom(name: str, machine: str) -> None:
    program = OneAtom(ATOMS[name])
    m, n, k = program.tile
    rng = np.random.default_rng(len(name))
    low, high = (0, 8) if ATOMS[name].type_a.kind == "uint" or ATOMS[name].type_b.kind == "uint" else (-3, 4)
    a, b, c = (
        rng.integers(low, high, shape).astype(NUMPY[type_.name])
        for shape, type_ in (
            ((m, k), ATOMS[name].type_a),
            ((n, k), ATOMS[name].type_b),
            ((m, n), ATOMS[name].type_d),
        )
    )
    expected = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64).T
    arrays = Arrays(machine, a, b, c)
    mA, mB, mC = arrays.tensors()
    if ATOMS[name].type_a.name == "tf32":
        mA.element_type = mB.element_type = cute.TFloat32
    program(mA, mB, mC)
    np.testing.assert_array_equal(arrays.back(2).astype(np.float64), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("epilogue", ["direct", "stmatrix"])
def test_shared_gemm_on_the_gpu(transposed: bool, epilogue: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-3, 4, (64, 64), dtype=torch.float16, device="cuda") for _ in range(2))
    c = torch.zeros((64, 64), dtype=torch.float32, device="cuda")
    views = [x.t().contiguous().t() for x in (a, b)] if transposed else [a, b]
    SharedGemm(transposed, epilogue)(*[from_dlpack(x, assumed_align=16) for x in views], from_dlpack(c))
    torch.cuda.synchronize()
    assert torch.equal(c, a.float() @ b.float().t())


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["registers", "memory", "async"])
def test_predicates_on_the_gpu(way: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(1, 129, dtype=torch.float32, device="cuda")
    y = torch.full((128,), -1.0, device="cuda")
    Predicated(way)(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16), Int32(90))
    torch.cuda.synchronize()
    expected = torch.where(torch.arange(128, device="cuda") < 90, x, 0.0 if way == "async" else -1.0)
    assert torch.equal(y, expected)
