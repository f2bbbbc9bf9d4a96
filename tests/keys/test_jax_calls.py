"""Each component of the key by which ``cutlass_call`` knows a call again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.keys.spy import Spy, check, components
from tilewright import Float32, Int32, cute
from tilewright.jax import TensorSpec, primitive

pytest.importorskip("jax")


@cute.jit
def first(stream: Any, x: cute.Tensor, *, n: Int32) -> None:
    pass


@cute.jit
def second(stream: Any, x: cute.Tensor, *, n: Float32) -> None:
    pass


GIVEN: dict[str, Any] = {
    "fn": first,
    "specs": ((TensorSpec(),), (TensorSpec(),)),
    "static": False,
    "options": None,
    "kwargs": {"n": 2},
    "aliases": {},
}
OTHERS: list[tuple[int, Any]] = [
    (0, {"fn": second}),
    (1, {"specs": ((TensorSpec(),), (TensorSpec(static=True),))}),
    (2, {"static": True}),
    (3, {"options": "--ptxas-options='-v'"}),
    *((4, {"kwargs": {"n": value}}) for value in (3, 2.0, (2,))),
    *((5, {"aliases": pairs}) for pairs in ({0: 0}, {0: 1})),
]


def numbered(spy: Spy, *cases: dict[str, Any]) -> list[Any]:
    """What is run for each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primitive, "_known", spy)
        works = [primitive.ffi.CALLS[int(primitive._numbered(primitive._Work(**{**GIVEN, **case})))] for case in cases]
    return [[str(value) for name, value in vars(work.__self__).items() if name in GIVEN] for work in works]


@pytest.mark.parametrize(("place", "other"), OTHERS, ids=str)
def test_key_of_jax_calls_has_each_component(place: int, other: dict[str, Any]) -> None:
    check(numbered, {}, other, (place,), {()})


def test_equal_numbers_of_other_types_are_other_programs() -> None:
    keys = [primitive._Work(**{**GIVEN, "kwargs": {"n": n}}).key() for n in (1, 1.0, True, 0.0, -0.0)]
    assert len(set(keys)) == len(keys)


def test_every_component_has_its_case() -> None:
    spy = Spy()
    numbered(spy, {})
    assert {path for path, _ in components(spy.asked[0], {()})} == {(place,) for place, _ in OTHERS}


def test_the_shape_and_dtype_of_each_buffer_are_of_the_key() -> None:
    """Of inputs and of outputs."""
    works = primitive._Work(**{**GIVEN, "fn": first})
    asked = Spy()
    works.executors = asked
    for at in range(2):
        for shape, dtype in (((4, 8), "float16"), ((8, 4), "float16"), ((4, 8), "float32")):
            buffers = [primitive.ffi.Buffer(0, (4, 8), "float16") for _ in range(2)]
            buffers[at] = primitive.ffi.Buffer(0, shape, dtype)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(primitive, "compile", lambda *given, **more: type("Made", (), {"parameters": ()}))
                works._executor(buffers[:1], buffers[1:], None)
    assert len(set(asked)) == 5
