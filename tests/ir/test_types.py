"""The rows of data types: what several interfaces call one type leads back to it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tilewright.ir.types import F32, NUMBERS, SCALARS, TF32, WIDE, ScalarType
from tilewright.lang.numbers.dtypes import dtype

# TF32 is Float32 in memory: other interfaces mean Float32 by what they call it.
KEYS: dict[str, Callable[[ScalarType], Any]] = {
    "name": lambda kind: kind.name,
    "NumPy": lambda kind: kind.numpy_name,
    "DLPack": lambda kind: (kind.dlpack, kind.width),
    "XLA": lambda kind: kind.xla or kind.name,
    "CuTe": lambda kind: kind.cute or kind.name,
    "npy": lambda kind: kind.npy or kind.name,
    "CUDA C++": lambda kind: kind.cuda,
}


@pytest.mark.parametrize("interface", KEYS)
def test_two_types_are_never_called_the_same(interface: str) -> None:
    kinds = [kind for kind in NUMBERS if kind != TF32]
    assert len({KEYS[interface](kind) for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_a_row_is_whole(kind: ScalarType) -> None:
    assert kind.dtype.itemsize == kind.bytes
    assert kind.packing, "a kernel takes it as an argument"
    if kind.name in SCALARS:
        assert kind.c and kind.torch and kind.dlpack >= 0
    if kind not in (TF32, F32):
        assert dtype(kind.numpy_name).ir_type == kind == dtype(kind.dtype).ir_type


def test_no_other_file_has_a_table_of_types() -> None:
    """What a new type must be entered in is its row; files that name two small floats choose among types."""
    package = Path(tilewright.__file__).parent
    named = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if '"e5m2"' in path.read_text()}
    assert named == {"ir/types.py"}


@pytest.mark.parametrize("kind", [*NUMBERS, *WIDE], ids=str)
def test_there_is_one_object_of_a_scalar_type(kind: ScalarType) -> None:
    assert copy.copy(kind) is copy.deepcopy(kind) is pickle.loads(pickle.dumps(kind)) is kind
    with pytest.raises(AssertionError):
        replace(kind, width=kind.width + 1)
