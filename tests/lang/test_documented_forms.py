"""Forms of functions of ``cute`` that its documentation shows: lists of layouts and tensors, names of keywords."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from tilewright import Float32, Int32, cute
from tilewright.errors import ConstraintError, LayoutError
from tilewright.testing import per_thread


def test_layouts_in_a_list_are_the_modes_of_one() -> None:
    modes = [cute.make_layout(64, stride=1), cute.make_layout(128, stride=64)]
    assert cute.make_layout(modes) == cute.make_layout(tuple(modes)) == cute.make_layout(*modes)
    assert str(cute.make_layout(modes)) == "(64,128):(1,64)"


def test_keywords_are_those_of_the_documentation() -> None:
    layout = cute.make_layout((5, 4), stride=(4, 1))
    assert cute.crd2idx(coord=(2, 3), layout=layout) == 11
    assert cute.assume(src=8, divby=4) == 8 and cute.depth(()) == 1
    assert str(cute.nullspace(layout=cute.make_layout((2, 4), stride=(0, 1)))) == "2:1"
    assert cute.leading_dim((4, 8), (8, 1)) == 1 and cute.is_major(1, (8, 1))
    with pytest.raises(LayoutError, match=r"\(1,2\) does not have the profile of 3"):
        cute.increment_coord((1, 2), 3)


def test_lists_of_one_tensor_are_copied_and_vectors_are_tensors() -> None:
    def copied(t: Any, p: Any) -> Any:
        source, target = cute.make_tensor(p, 4), cute.make_tensor(p + 4, 4)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int32)
        fragment = cute.make_rmem_tensor(4, Int32)
        cute.copy(atom, [source], [fragment], unroll_factor=2)
        values = cute.TensorSSA.from_vector(fragment.load().ir_value(), shape=(2, 2))
        fragment.store(values.apply_op(operator.sub, 10, flip=True).reshape(4))
        cute.autovec_copy(fragment, target, l1c_evict_priority=None)

    assert per_thread(copied, 1, memory=[1, 2, 3, 4, 0, 0, 0, 0])[1][4:] == [9, 8, 7, 6]
    with pytest.raises(ConstraintError, match="takes a vector"):
        per_thread(lambda t: cute.TensorSSA.from_vector(Float32(t).ir_value())[0], 1)
