"""Pairs of Float32: cute.arch.add_packed_f32x2 and its like."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tilewright import Float32, cute
from tilewright._mlir.dialects import nvvm
from tilewright.errors import ConstraintError

RN = nvvm.RoundingModeKind.RN
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("mode", [{}, {"rnd": "rn"}, {"rnd": RN}, {"rnd": None, "ftz": False}])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_number_is_rounded_to_the_nearest(name: str, mode: dict[str, Any]) -> None:
    operation = partial(getattr(cute.arch, f"{name}_packed_f32x2"), **mode)
    values = np.random.default_rng(3).normal(size=(2, 2)).astype(np.float32)
    found = operation(tuple(map(Float32, values[0])), tuple(map(Float32, values[1])))
    assert [float(x.value) for x in found] == OPERATIONS[name](*values).tolist()


@pytest.mark.parametrize("mode", [{"rnd": "rz"}, {"rnd": nvvm.RoundingModeKind.RP}, {"ftz": True}])
def test_other_modes_are_refused(mode: dict[str, Any]) -> None:
    pair = Float32(1), Float32(2)
    with pytest.raises(ConstraintError, match=rf"fma_packed_f32x2: {next(iter(mode))}=.*here: "):
        cute.arch.fma_packed_f32x2(pair, pair, pair, **mode)
