"""``loc`` and ``ip`` may be passed to every operation of the language, and change nothing."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.location_keywords import takes_location

NONE: Any = {"loc": None, "ip": None}
INTERNAL = {
    "Tensor": {"advanced", "compose", "moved", "through", "to", "widened", "with_layout"},
    **dict.fromkeys(("TiledMma", "ThrMma", "MmaAtom"), {"places_of_factors", "words_of_factors"}),
    "Pointer": {"ir_value", "known_aligned", "load_place", "store_place", "unswizzled", "value"},
}
"""Methods that programs do not call."""


@pytest.mark.parametrize(
    "cls",
    [
        cute.Tensor,
        cute.TensorSSA,
        cute.Pointer,
        cute.TiledMma,
        cute.TiledCopy,
        cute.ThrMma,
        cute.ThrCopy,
        cute.CopyAtom,
        cute.MmaAtom,
        pipeline.PipelineAsync,
        pipeline.PipelineTmaAsync,
        pipeline.PipelineState,
        pipeline.NamedBarrier,
        pipeline.MbarrierArray,
        utils.SmemAllocator,
        utils.HardwareInfo,
    ],
    ids=lambda cls: cls.__name__,
)
def test_every_public_method_takes_them(cls: type) -> None:
    names = [n for n in dir(cls) if not n.startswith("_") or n in ("__getitem__", "__setitem__")]
    without = []
    for name in names:
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and name not in INTERNAL.get(cls.__name__, ()):
            if not {"loc", "ip"} <= inspect.signature(function).parameters.keys():
                without.append(name)
    assert without == []


@cute.kernel
def copy_kernel(a: cute.Tensor, b: cute.Tensor):
    t, _, _ = cute.arch.thread_idx(**NONE)
    row = a.__getitem__((t, None), **NONE)
    number = row.__getitem__(1, loc=None, ip=None)
    b.__setitem__((t, 0), number, **NONE)
    layout = cute.make_layout((4, 8), **NONE)
    b.__setitem__((t, 1), cutlass.Float32(layout((1, 2), **NONE)), **NONE)


def test_elements_and_coordinates() -> None:
    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor):
        copy_kernel(a, b).launch(grid=(1, 1, 1), block=(4, 1, 1))

    a, b = np.arange(8, dtype=np.float32).reshape(4, 2), np.zeros((4, 2), np.float32)
    run(from_dlpack(a), from_dlpack(b))
    assert b.tolist() == [[x, 9] for x in a[:, 1]]


def test_other_keywords_are_refused() -> None:
    @takes_location
    class Pair:
        def sum(self, a: int, b: int) -> int:
            return a + b

        @staticmethod
        def twice(a: int) -> int:
            return 2 * a

    assert (Pair().sum(1, b=2, ip=None), Pair.twice(4, loc=None)) == (3, 8)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lok'"):
        Pair().sum(1, 2, lok=None)
