"""Calls of products of PyTorch's tensors whose launches are repeated by a key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.keys.spy import Spy
from tilewright.gemm import matmul


def run(spy: Spy, *calls: Any) -> list[Any]:
    """For each call its result as text, in which NaN equals NaN, or why it is refused, and how it was computed."""
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(matmul.__globals__, "REPEATED_PRODUCTS", spy)
        for call in calls:
            try:
                result = call.run()
                kept = spy.get(spy.asked[-1])  # what is copied before is not remembered
                plan = repr(kept.prepared.plan) if kept is not None else ""
                outcomes.append((str(result.dtype), tuple(result.shape), repr(result.double().tolist()), plan))
            except Exception as error:
                outcomes.append(f"{type(error).__name__} {error}")
    return outcomes
