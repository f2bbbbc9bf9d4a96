"""The race checker and its plain reference have the same verdict on random kernels."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.check.pairs import launch
from tests.check.random_kernels import Drawn, DrawnBarriers, DrawnLanes
from tests.check.reference import Reference
from tilewright import cute, sim
from tilewright.sim import checks
from tilewright.sim.events import observing

KERNELS = 12  # of each part; a check of the test itself: both verdicts occur among them


def verdicts(drawn: Drawn, seed: int, folder: Path) -> tuple[bool, set[tuple[str, str]], str]:
    """Whether the checker reports a race, the pairs of lines that the reference reports, and the kernel."""
    path = folder / f"drawn_{seed}.py"
    path.write_text(drawn.text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = cute.runtime.from_dlpack(np.asfortranarray(np.arange(64, dtype=np.int32).reshape(4, 16)), assumed_align=16)
    arrays = [x, np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros((2, 128), np.int32)]
    made: list[Reference] = []

    def observe(name: str, config: Any) -> Reference:
        made.append(Reference())
        return made[0]

    # Warps apart and all warps together: barriers of several ids are one event where warps go together.
    schedule = ("seeded", "lockstep")[seed % 2]
    with sim.options(check="races", seed=seed, schedule=schedule), checks.collecting() as report, observing(observe):
        launch(module.kernel, *arrays, grid=drawn.blocks, block=drawn.threads)
    return "data-race" in report.rules, made[0].races, drawn.text()


@pytest.mark.parametrize("part", range(2))
def test_random_kernels_have_the_same_verdict_from_both(part: int, tmp_path: Path) -> None:
    found = 0
    for seed in range(part * KERNELS, (part + 1) * KERNELS):
        reported, races, text = verdicts(Drawn(seed), seed, tmp_path)
        assert reported == bool(races), f"seed {seed}: checker {reported}, reference {sorted(races)}\n{text}"
        found += reported
    assert 0 < found < KERNELS


@pytest.mark.parametrize("part", range(3))
def test_lanes_that_act_apart_have_the_same_verdict_from_both(part: int, tmp_path: Path) -> None:
    found = 0
    for seed in range(part * KERNELS, (part + 1) * KERNELS):
        reported, races, text = verdicts(DrawnLanes(seed), seed, tmp_path)
        assert reported == bool(races), f"seed {seed}: checker {reported}, reference {sorted(races)}\n{text}"
        found += reported
    assert 0 < found < KERNELS


def test_several_barriers_at_once_have_the_same_verdict_from_both(tmp_path: Path) -> None:
    found = 0
    for seed in range(2 * KERNELS):
        reported, races, text = verdicts(DrawnBarriers(seed), seed, tmp_path)
        assert reported == bool(races), f"seed {seed}: checker {reported}, reference {sorted(races)}\n{text}"
        found += reported
    assert 0 < found < 2 * KERNELS
