"""What the tests of short cuts run: random kernels, and pairs of a bug and its twin, each by a name of its own."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import random
import tempfile
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.check import tiles
from tests.check.pairs import PAIRS, launch, numbers
from tests.check.random_kernels import Drawn, DrawnLanes
from tests.check.replay import POLLS, seed_of, without_places
from tests.sim.random_threads import empty_results, run_threads
from tilewright import cute, sim
from tilewright.errors import SimulationError
from tilewright.sim.checks import races

RANDOM = {"drawn": Drawn, "lanes": DrawnLanes}


def module_of(drawn: Drawn, folder: Path, name: str) -> Any:
    """A random kernel as a module: findings name its lines."""
    path = folder / f"{name}.py"
    path.write_text(drawn.text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays_of_drawn() -> list[Any]:
    x = cute.runtime.from_dlpack(np.asfortranarray(np.arange(64, dtype=np.int32).reshape(4, 16)), assumed_align=16)
    return [x, np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros((2, 128), np.int32)]


@lru_cache(maxsize=1)
def pairs() -> dict[str, Any]:
    for _, name, _ in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not name.startswith("test_"):
            importlib.import_module(f"tests.check.{name}")
    return {pair.name: pair for pair in PAIRS if pair.name not in POLLS}


@cache
def launch_of(kind: str, which: str) -> tuple[Callable[[], None], int]:
    """A launch, and the seed of its schedule. ``kind``: ``tiles``, ``several``, ``drawn``, ``lanes``, ``threads``,
    ``bug``, ``twin``."""
    if kind in ("bug", "twin"):
        pair = pairs()[which]
        return lambda: pair.run(kind == "bug"), seed_of(pair, kind == "bug")
    seed = int(which)
    if kind == "threads":
        return lambda: run_threads(seed, empty_results()), seed
    if kind in ("tiles", "several"):
        kinds = tiles.SEVERAL if kind == "several" else tiles.KINDS
        kernel, x, y = tiles.kernel_of(seed, kinds), numbers(tiles.THREADS), np.zeros(2 * tiles.THREADS, np.float32)
        return lambda: launch(kernel, x, y, grid=2, block=tiles.THREADS), seed
    drawn = RANDOM[kind](seed)
    kernel = module_of(drawn, Path(tempfile.mkdtemp()), f"{kind}_{seed}").kernel
    return lambda: launch(kernel, *arrays_of_drawn(), grid=drawn.blocks, block=drawn.threads), seed


def report_of(kind: str, which: str, check: str = "all") -> str:
    """What the checks say of a launch, without places in files and memory."""
    run, seed = launch_of(kind, which)
    # The default checks would look at less without some short cuts: what they look at costs of their budget.
    with sim.options(check=check, seed=seed), mock.patch.object(races, "BUDGET", 1 << 40):
        try:
            run()
        except SimulationError as error:
            return without_places(str(error))
    return ""


@cache
def report_as_it_is(kind: str, which: str, check: str = "all") -> str:
    return report_of(kind, which, check)


def drawn_cases(seed: str, some_pairs: int, some_kernels: int) -> list[tuple[str, str]]:
    """Pairs, with their twins, and random kernels."""
    draw = random.Random(seed)
    found = [(kind, name) for name in draw.sample(sorted(pairs()), some_pairs) for kind in ("bug", "twin")]
    return found + [
        (kind, str(draw.randrange(40))) for kind in ("tiles", "drawn", "lanes") for _ in range(some_kernels)
    ]
