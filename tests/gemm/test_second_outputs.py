"""Second outputs of Hopper's kernels: by TMA through D's buffers where their types allow it, else by threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.gemm import SplitK, kernels, matmul
from tilewright.gemm.config import Major
from tilewright.gemm.epilogue.activations import Activation
from tilewright.gemm.epilogue.functions import OfWholeSums, Store
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.operators.epilogues import tensor_of

HOPPER = kernels()["hopper_f16"]
VECTOR = 8  # elements of Float16 in 16 bytes


def forms() -> Iterator[Any]:
    """One size for each way of the epilogue: transposed, in turns, exchanged in a cluster, buffers, columns."""
    seen = set()
    for size in HOPPER.sizes:
        form = size.transposed, size.pingpong, size.cluster_k > 1, size.epilogue_columns
        if form not in seen:
            seen.add(form)
            yield pytest.param(size, id=f"{size.tile[0]}x{size.tile[1]} {form}")


@pytest.fixture
def by_tma(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each second output of the kernels that are staged, not found compiled: whether it goes by TMA."""
    found: list[bool] = []
    plain = TmaStoreEpilogue.output_atoms

    def output_atoms(self: TmaStoreEpilogue, function: Any) -> Any:
        atoms = plain(self, function)
        found.extend(pair is not None for pair in atoms)
        return atoms

    monkeypatch.setattr(TmaStoreEpilogue, "output_atoms", output_atoms)
    return found


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float16)


class Output:
    """An (m, n) matrix in memory of its own, ``shift`` elements from a multiple of 16 bytes."""

    def __init__(self, m: int, n: int, shift: int = 0, dtype: Any = np.float16) -> None:
        self.memory = np.full(m * n + 64, -77, dtype)
        self.begin = -(self.memory.ctypes.data // self.memory.itemsize) % VECTOR + shift
        self.matrix = self.memory[self.begin : self.begin + m * n].reshape(m, n)

    def check(self, exact: np.ndarray) -> None:
        """It has the numbers, and nothing beside it was written."""
        assert (self.matrix == exact).all()
        beside = self.memory.copy()
        beside[self.begin : self.begin + self.matrix.size] = -77
        assert (beside == -77).all()


@pytest.mark.parametrize("size", list(forms()))
def test_second_outputs_with_each_epilogue(size: Any, by_tma: list[bool]) -> None:
    m, n, k = 136, 264, 256
    a, b, before = integers(m, k), integers(k, n), Output(m, n)
    exact = a.astype(np.float64) @ b
    d = matmul(a, b, kernel=HOPPER.only(size), epilogue=(Store(before.matrix), Activation("relu")))
    before.check(exact)
    assert (d == np.maximum(exact, 0)).all() and False not in by_tma


@pytest.mark.parametrize(
    "decomposition", ["data_parallel", "stream_k", SplitK(2), SplitK(2, mode="parallel")], ids=repr
)
def test_decompositions(decomposition: Any) -> None:
    m, n, k = 136, 264, 256
    a, b, before = integers(m, k), integers(k, n), Output(m, n)
    exact = a.astype(np.float64) @ b
    d = matmul(
        a, b, kernel="hopper_f16", decomposition=decomposition, epilogue=(Store(before.matrix), Activation("relu"))
    )
    before.check(exact)
    assert (d == np.maximum(exact, 0)).all()


@dataclass(frozen=True)
class Halves(OfWholeSums):
    """Two outputs: the sums, and half of them."""

    whole: Any
    half: Any

    writes_always = True

    @property
    def matrices(self) -> list[tuple[Any, bool]]:
        return [(self.whole, True), (self.half, True)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        tile.write(self.half, acc.load() * 0.5)
        tile.write(self.whole, acc.load())


@dataclass(frozen=True)
class Forgetful(Halves):
    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        tile.write(self.half, acc.load())


def test_an_output_that_is_not_written_is_named() -> None:
    a, b, whole, half = integers(136, 64), integers(64, 264), Output(136, 264), Output(136, 264)
    with pytest.raises(ConstraintError, match="did not write all of them"):
        matmul(a, b, kernel="hopper_f16", epilogue=Forgetful(whole.matrix, half.matrix))


def test_outputs_take_turns_in_the_buffers() -> None:
    """Nine stores a tile by two buffers: those of the tile before have been read when the next begins."""
    size = next(x for x in HOPPER.sizes if x.part[1] // 16 % 2 and not x.pingpong and x.cluster_k == 1)
    size = replace(size, epilogue_columns=16, cluster=(1, 1))
    assert size.parts * 3 % size.epilogue_buffers
    m, n = 3 * size.tile[0], 2 * size.tile[1]
    a, b, whole, half = integers(m, 64), integers(64, n), Output(m, n), Output(m, n)
    with sim.options(sms=1, check="all"):
        d = matmul(a, b, kernel=HOPPER.only(size), epilogue=Halves(whole.matrix, half.matrix))
    exact = a.astype(np.float64) @ b
    whole.check(exact)
    half.check(exact / 2)
    assert (d == exact).all()


TYPES: dict[str, Any] = {  # a second output of D's type, and what each change of it takes away
    "as D": (tensor_of, True),
    "element by element": (lambda x: from_dlpack(x, assumed_align=2).mark_layout_dynamic(), False),
    "base": (lambda x: from_dlpack(x, assumed_align=8).mark_compact_shape_dynamic(1, divisibility=8), False),
    "rows": (lambda x: from_dlpack(x, assumed_align=16).mark_compact_shape_dynamic(1, divisibility=4), False),
    "known": (lambda x: from_dlpack(x, assumed_align=16), True),
    "columns": (lambda x: from_dlpack(x.T, assumed_align=16).mark_compact_shape_dynamic(0, divisibility=8), False),
    "another type": (lambda x: from_dlpack(x.view(np.int16), assumed_align=16), False),
    "a stack": (lambda x: from_dlpack(x[None], assumed_align=16), False),
}


@pytest.mark.parametrize("case", TYPES)
def test_the_type_of_an_output_says_how_it_is_stored(case: str) -> None:
    make, by_tma = TYPES[case]
    found = []

    @cute.jit
    def host(x: cute.Tensor) -> None:
        for config in (HOPPER.config, replace(HOPPER.config, c=replace(HOPPER.config.c, major=Major.MN))):
            found.append(TmaStoreEpilogue(config).stores(x))

    matrix = Output(64, 64).matrix
    host(make(matrix))
    assert found == ([by_tma, False] if case != "columns" else [False, True])


@dataclass(frozen=True)
class Sometimes(OfWholeSums):
    """An output that is written where the first sum of a thread's part is positive: no TMA store can be made of it."""

    matrix: Any

    @property
    def matrices(self) -> list[tuple[Any, bool]]:
        return [(self.matrix, True)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        if acc[0] > 0:
            tile.write(self.matrix, acc.load())


def test_two_outputs(by_tma: list[bool]) -> None:
    a, b, whole, half = integers(136, 64), integers(64, 264), Output(136, 264), Output(136, 264)
    d = matmul(a, b, kernel="hopper_f16", epilogue=Halves(whole.matrix, half.matrix))
    exact = a.astype(np.float64) @ b
    whole.check(exact)
    half.check(exact / 2)
    assert (d == exact).all() and by_tma == [True, True]


def test_conditional_second_outputs_are_written_by_threads(by_tma: list[bool]) -> None:
    a, b, some = integers(136, 64), integers(64, 264), Output(136, 264)
    d = matmul(a, b, kernel="hopper_f16", epilogue=Sometimes(some.matrix))
    exact = a.astype(np.float64) @ b
    written = some.matrix != -77
    assert (d == exact).all() and (some.matrix[written] == exact[written]).all()
    assert written.any() and not written.all() and by_tma == []


@pytest.mark.parametrize(("shift", "dtype"), [(1, np.float16), (0, np.float32)], ids=str)
def test_second_outputs_that_tma_cannot_write_are_written_by_threads(
    shift: int, dtype: Any, by_tma: list[bool]
) -> None:
    """Rows that begin elsewhere than at multiples of 16 bytes, elements of another size than D's."""
    a, b, before = integers(136, 64), integers(64, 264), Output(136, 264, shift, dtype)
    d = matmul(a, b, kernel="hopper_f16", epilogue=Store(before.matrix))
    exact = a.astype(np.float64) @ b
    before.check(exact)
    assert (d == exact).all() and True not in by_tma


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(136, 264, 256), (4096, 4096, 512), (64, 8192, 4096), (1000, 1016, 1024)], ids=str)
def test_second_outputs_on_a_gpu(shape: tuple[int, int, int]) -> None:
    import torch

    m, n, k = shape
    a, b = (torch.randint(-3, 4, s, device="cuda").half() for s in ((m, k), (k, n)))
    before = torch.full((m, n), -77.0, device="cuda").half()
    d = matmul(a, b, epilogue=(Store(before), Activation("relu")))
    exact = a.float() @ b.float()
    assert torch.equal(before.float(), exact) and torch.equal(d.float(), exact.clamp(min=0))
