"""Types in annotations: stand-in tensors, and every numeric class that ``cute.typing`` names."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float16, Int32, cute
from tilewright.cute import typing
from tilewright.cute.runtime import FakeTensor, from_dlpack, make_fake_compact_tensor, make_fake_tensor
from tilewright.errors import ArgumentError


def test_stand_ins_have_a_type() -> None:
    fakes = [make_fake_compact_tensor(Float16, (cute.sym_int(), 8)), make_fake_tensor(Float16, (4, 8), (8, 1))]
    assert all(isinstance(fake, FakeTensor) and isinstance(fake, cute.Tensor) for fake in fakes)
    assert not isinstance(from_dlpack(np.zeros(4, np.float32)), FakeTensor)


def test_the_type_serves_as_an_annotation() -> None:
    @cute.kernel
    def double(x: cute.Tensor) -> None:
        x[cute.arch.thread_idx()[0]] = x[cute.arch.thread_idx()[0]] * 2

    @cute.jit
    def run(x: FakeTensor) -> None:
        double(x).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))

    compiled = cute.compile(run, make_fake_compact_tensor(Int32, (cute.sym_int(),)))
    x = np.arange(5, dtype=np.int32)
    compiled(x)
    run(x)
    assert x.tolist() == [0, 4, 8, 12, 16]
    with pytest.raises(ArgumentError, match="x"):
        run(3)


def test_the_numbers_of_typing_are_those_of_the_package() -> None:
    names = "Int128 Uint128 Float4E2M1FN Float6E2M3FN Float6E3M2FN Float8E4M3FN Float8E8M0FNU Int32"
    for name in names.split():
        assert getattr(typing, name) is getattr(cutlass, name)
