"""What the choice for a shape costs at its first sight and after, in calls; times depend on the machine."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from tests.counting import calls_in
from tilewright import Float16
from tilewright.gemm import kernels
from tilewright.gemm.choice.choose import KernelOptions, fastest
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.family.plan_options import EVEN_SHARES
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.tuning.stand_in import stand_in

LIMITS = (132, 232448)
ENTRY = kernels()["hopper_f16"]
SHAPES = [
    (64, 64, 64, 1),
    (4096, 4096, 4096, 1),
    (16, 4096, 4096, 1),
    (384, 512, 16384, 1),
    (100, 200, 300, 5),
    (8192, 8192, 8192, 1),
    (7, 7, 7, 1),
    (8, 1736, 6600, 1),
    (1 << 20, 8, 64, 1),
    (512, 512, 512, 1000),
]


def test_the_choice_takes_least_time() -> None:
    options = KernelOptions.of(ENTRY, LIMITS)
    for problem in SHAPES:
        for sharing, decomposition in ((True, "auto"), (False, "data_parallel")):
            times = options.model.times(problem, sharing)[: None if sharing else options.model.one_block]
            assert options.best(problem, decomposition) is options.plan_options[int(times.argmin())]
            assert np.isfinite(times).all() and (times > 0).all()
        if problem[3] == 1:
            first = options.model.unshared
            least = options.plan_options[first + int(options.model.times(problem)[first:].argmin())]
            assert options.best(problem, "stream_k") is least


def test_a_tile_for_each_block_is_that() -> None:
    """Clusters whose blocks share the k tiles split K: options of "auto", or where asked for."""
    options, rng = KernelOptions.of(ENTRY, LIMITS), random.Random(3)
    shapes = [(*(8 * rng.randint(1, 1024) for _ in range(2)), 64 * rng.randint(1, 512), 1) for _ in range(300)]
    assert any(options.best(shape, "auto").config.cluster_k > 1 for shape in shapes)
    for decomposition in ("data_parallel", "dynamic"):
        found = [options.best(shape, decomposition) for shape in shapes]
        assert not any(way.config.cluster_k > 1 or way.parts != 1 for way in found)
    split = ENTRY.only(next(way.config for way in options.plan_options if way.config.cluster_k > 1))
    assert KernelOptions.of(split, LIMITS).best(shapes[0], "data_parallel").config.cluster_k > 1


def test_calls_in_a_choice() -> None:
    options = KernelOptions.of(ENTRY, LIMITS)
    options.fastest((128, 256, 512, 1), "auto")
    first = calls_in(lambda: options.fastest((136, 264, 520, 1), "auto"))
    fastest(ENTRY, "auto", (136, 264, 520, 1), LIMITS)
    after = calls_in(lambda: fastest(ENTRY, "auto", (136, 264, 520, 1), LIMITS))
    assert first <= 20, "little beside the arithmetic, which is not counted"
    assert after <= 5, "a look-up"


def test_calls_in_a_plan() -> None:
    entries = candidates(Float16, None)
    Plan.of(stand_in((264, 504, 1032), "float16", None, "k", "k"), entries, "auto", "gpu")  # the same size
    problem = stand_in((264, 520, 1032), "float16", None, "k", "k")
    assert calls_in(lambda: Plan.of(problem, entries, "auto", "gpu")) < 420, "of a product that is computed transposed"


def test_entries_that_travel_hash_anew() -> None:
    """Hashes of texts differ between processes."""
    hash(ENTRY)
    again = pickle.loads(pickle.dumps(ENTRY))
    assert "_hash" in ENTRY.__dict__ and "_hash" not in again.__dict__ and again == ENTRY


@pytest.mark.parametrize("decomposition", ["auto", "stream_k", "data_parallel"])
def test_empty_products_share_no_tiles_and_batches_where_they_are_asked_to(decomposition: str) -> None:
    options = KernelOptions.of(ENTRY, LIMITS)
    for problem in ((256, 256, 4096, 3), (0, 256, 64, 1)):
        shared = decomposition == "stream_k" and problem[0] > 0
        assert options.best(problem, decomposition).parts == (EVEN_SHARES if shared else 1)
