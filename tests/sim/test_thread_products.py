"""Random programs of copies and multiply-adds give the same as products of warps and thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.random_threads import empty_results, run_threads
from tilewright import sim
from tilewright.errors import SimulationError
from tilewright.sim import shared_loads, thread_products
from tilewright.sim.checks import races
from tilewright.sim.thread_products import ThreadProducts


def outcome(seed: int, check: str, schedule: str) -> tuple[Any, ...]:
    """What was stored, what was counted and what was found."""
    out, found = empty_results(), ""
    with sim.options(check=check, schedule=schedule), sim.profile() as report:
        try:
            run_threads(seed, out)
        except SimulationError as error:
            found = str(error)
    counts = [(k.instructions, k.bytes, k.accesses, k.wavefronts) for k in report.kernels]
    return out, counts, found


@pytest.mark.parametrize("check", ["none", "default"])
def test_random_programs(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"in_order": 0, "load": 0, "spread": 0}

    def count(kind: Any, name: str) -> None:
        plain = getattr(kind, name)

        def call(*args: Any) -> Any:
            used[name] += 1
            return plain(*args)

        monkeypatch.setattr(kind, name, call)

    count(thread_products.Sums, "in_order")
    count(shared_loads.SharedLoads, "load")
    count(shared_loads.Operand, "spread")
    monkeypatch.setattr(races, "BUDGET", 1 << 40)  # what the default checks look at, else depends on how it is told
    # In the third and the 28th it matters whether a load came before a cp.async; in others a check wakes between.
    for seed in range(24) if check == "none" else (3, 6, 7, 28):
        schedule = "seeded" if seed % 3 else "lockstep"
        with monkeypatch.context() as patch:
            patch.setattr(ThreadProducts, "step", lambda *_: None)
            patch.setattr(ThreadProducts, "finish", lambda *_: None)
            plain = outcome(seed, check, schedule)
        fast = outcome(seed, check, schedule)
        np.testing.assert_array_equal(fast[0], plain[0], err_msg=f"seed {seed}")
        assert fast[1:] == plain[1:], f"seed {seed}"
        assert plain[0].any()
    assert min(used.values()) > 5, used
