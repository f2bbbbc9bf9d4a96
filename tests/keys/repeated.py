"""Calls of products of PyTorch's tensors whose launches are repeated by a key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.keys.spy import Spy
from tilewright.gemm import matmul
from tilewright.gemm.operators import repeated_call


def run(spy: Spy, *calls: Any) -> list[Any]:
    """For each call its result as text, in which NaN equals NaN, or why it is refused, and how it was computed."""
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(matmul.__globals__, "REPEATED_PRODUCTS", spy)
        patch.setattr(repeated_call, "CALLS", spy)
        patch.setattr(repeated_call, "OPEN", {})  # else calls of other extents stand for those that are not kept
        for call in calls:
            try:
                result = call.run()
                kept = spy.get(spy.asked[-1])  # what is copied before is not remembered
                outcomes.append((str(result.dtype), tuple(result.shape), repr(result.double().tolist()), plans(kept)))
            except Exception as error:
                outcomes.append(f"{type(error).__name__} {error}")
    return outcomes


def plans(kept: Any) -> str:
    """By which kernels a product or a call that is kept is computed."""
    if kept is None:
        return ""
    if hasattr(kept, "prepared"):
        return repr(kept.prepared.plan)
    found: list[Any] = []
    for launches, _ in kept.launches:
        found += [launches.plan] if hasattr(launches, "plan") else [str(x.code.kernels) for x in launches.bindings[0]]
    return repr(found)
