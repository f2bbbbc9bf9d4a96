"""Kernels of one architecture are tested on a GPU of it alone."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _has_the_instructions(request: pytest.FixtureRequest) -> None:
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if params.get("machine") == "gpu" and str(params.get("kernel", params.get("name", ""))).startswith("sm120_"):
        torch = pytest.importorskip("torch")
        if torch.cuda.get_device_capability()[0] != 12:
            pytest.skip("a kernel for sm_120")
