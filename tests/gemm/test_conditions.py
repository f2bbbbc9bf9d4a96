"""Single conditions of the products' host side, asked by themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import gemm_grouped
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.operators import offsets
from tilewright.gemm.operators.matmul import CallArrays

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("indirect", [False, True])
def test_kernels_that_copy_nothing_are_not_asked_what_they_need(packs: bool, indirect: bool) -> None:
    asked: list[Any] = []
    family = SimpleNamespace(packs=packs, accesses=lambda *given: asked.append(given) or [])
    problem = SimpleNamespace(indirect=object() if indirect else None)
    assert Packing.of(problem, SimpleNamespace(family=family, config=None)) is None
    assert bool(asked) == (packs and not indirect)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("c_copied", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_a_product_of_copies_is_not_repeated(copied: bool, c_copied: bool, same: bool) -> None:
    a, b, other = (torch.zeros(4, 4) for _ in range(3))
    operands: Any = SimpleNamespace(a=a, b=b if same else other)
    given = CallArrays(operands, None, None, None, copied, c_copied, (), [], None)
    call: Any = SimpleNamespace(a=a, b=b, given_vectors=())
    assert given.may_be_repeated(call) == (same and not copied and not c_copied)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_bias_of_one_element_may_have_any_stride(columns: int) -> None:
    a, b = np.ones((2, 8), np.float32), np.ones((8, columns), np.float32)
    bias = np.arange(8, dtype=np.float32)[3::4][:columns]
    assert bias.strides == (16,)
    if columns == 1:
        (found,) = gemm_grouped([(a, b)], bias=[bias])
        assert found.tolist() == [[11.0], [11.0]]
    else:
        with pytest.raises(ArgumentError, match="must be a contiguous vector of 2 elements"):
            gemm_grouped([(a, b)], bias=[bias])


@pytest.mark.parametrize("compiling", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_calls_of_grouped_matmul_recorded_as_operator(
    compiling: bool, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where PyTorch compiles the call, or records it for gradients."""
    from tilewright.gemm.operators import torch_offsets

    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    monkeypatch.setattr(torch_offsets, "recorded", lambda *_: "recorded")
    monkeypatch.setattr(offsets, "product_of", lambda *_, **__: "at once")
    a, b = torch.zeros(4, 8, requires_grad=recorded), torch.zeros(2, 8, 4)
    found = offsets.grouped_matmul(a, b, torch.tensor([2, 4], dtype=torch.int32))
    assert found == ("recorded" if compiling or recorded else "at once")


def test_operators_infer_shapes_of_fake_tensors() -> None:
    from tilewright.gemm.operators import torch_offsets, torch_scaled

    def empty(*shape: int) -> Any:
        return torch.empty(shape, dtype=torch.float16)

    assert torch_offsets.fake(empty(2, 4, 8), empty(2, 8, 3)).shape == (2, 4, 3)
    with pytest.raises(ArgumentError):
        torch_offsets.fake(empty(2, 4, 8), empty(2, 8, 3), torch.empty(2, dtype=torch.int32))
    assert torch_offsets.fake(empty(4, 8), empty(2, 8, 3), torch.empty(2, dtype=torch.int32)).shape == (4, 3)
    for left, right in (((4, 8), (8,)), ((4, 8), (8, 3, 2)), ((8,), (8, 3)), ((4, 8), (7, 3))):
        with pytest.raises(ArgumentError, match="scaled_matmul multiplies two matrices"):
            torch_scaled.fake(empty(*left), empty(*right), None, None)
    assert torch_scaled.fake(empty(4, 8), empty(8, 3), None, None).dtype is torch.bfloat16


@pytest.mark.parametrize("out_dtype", [None, "torch", "class"])
def test_the_dtype_of_a_recorded_scaled_product(out_dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright import BFloat16
    from tilewright.gemm.operators import torch_scaled

    seen: list[Any] = []
    given = {None: None, "torch": torch.float16, "class": BFloat16}[out_dtype]
    monkeypatch.setattr(
        torch.ops, "tilewright", SimpleNamespace(scaled_matmul=lambda *args: seen.append(args[6]) or args[0])
    )
    a = torch.zeros(4, 4)
    for out in (None, torch.ones(4, 4)):
        found = torch_scaled.recorded(a, a, a, a, None, out, None, given, False, None)
        assert found is (a if out is None else out) and not found.any()
    dtype = {"class": torch.bfloat16}.get(out_dtype, given)
    assert seen == [dtype, dtype or torch.float32]  # without one, that of out
