"""Which pairs of accesses race, by their kinds, each kind with each other, and the words that say why.

Strong ones (atomics, and those with an order) whose scopes cover both threads do not; others do, where one writes.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch, shared
from tilewright import cute, sim
from tilewright.sim.checks.collect import collecting

arch = cute.arch


# The findings name lines, so each kind has one of its own.
def plain_load(p: Any, value: Any, out: Any) -> Any:
    out[0] = cute.make_tensor(p, 1)[0]


def plain_store(p: Any, value: Any, out: Any) -> Any:
    cute.make_tensor(p, 1)[0] = value


def relaxed_load_cta(p: Any, value: Any, out: Any) -> Any:
    return arch.load(p, sem="relaxed", scope="cta")


def relaxed_load_gpu(p: Any, value: Any, out: Any) -> Any:
    return arch.load(p, sem="relaxed", scope="gpu")


def relaxed_store_cta(p: Any, value: Any, out: Any) -> Any:
    return arch.store(p, value, sem="relaxed", scope="cta")


def relaxed_store_gpu(p: Any, value: Any, out: Any) -> Any:
    return arch.store(p, value, sem="relaxed", scope="gpu")


def atomic_cta(p: Any, value: Any, out: Any) -> Any:
    return arch.atomic_max(p, value, scope="cta")


def atomic_gpu(p: Any, value: Any, out: Any) -> Any:
    return arch.atomic_max(p, value, scope="gpu")


def atomic_sys(p: Any, value: Any, out: Any) -> Any:
    return arch.atomic_max(p, value, scope="sys")


KINDS = (
    plain_load,
    plain_store,
    relaxed_load_cta,
    relaxed_load_gpu,
    relaxed_store_cta,
    relaxed_store_gpu,
    atomic_cta,
    atomic_gpu,
    atomic_sys,
)
LINES = {inspect.getsourcelines(kind)[1] + 1: kind.__name__ for kind in KINDS}
CTA_COVERS = {"lane": True, "warp": True, "block": False}


def races(one: str, other: str, where: str) -> bool:
    def strong(kind: str) -> bool:
        return not kind.startswith("plain") and (CTA_COVERS[where] or not kind.endswith("cta"))

    return ("load" not in one or "load" not in other) and not (strong(one) and strong(other))


def words(one: str, other: str, where: str) -> str:
    plain = one.startswith("plain") + other.startswith("plain")
    if plain == 0:
        return "both are strong, but scope cta does not cover both threads"
    if one == other and where != "block":
        return "two threads write one element by this line"
    if where == "lane":
        return "lanes of one warp run apart"
    if plain == 1:
        return "the other is a plain access, which" if where == "warp" else "a plain access of another block"
    return "no barrier, mbarrier or release" if where == "warp" else "blocks run in any order"


def found(where: str, in_shared: bool, check: str) -> dict[tuple[str, ...], str]:
    """The pairs that race, and why."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = arch.thread_idx()
        b, _, _ = arch.block_idx()
        base = shared(len(KINDS) ** 2, cutlass.Int32).iterator if in_shared else x.iterator
        second = {"lane": (t == 1) & (b == 0), "warp": (t == 32) & (b == 0), "block": (t == 0) & (b == 1)}[where]
        first = (t == 0) & (b == 0)
        for who, value in ((first, 0), (second, 1)):
            if who:
                for i, one in enumerate(KINDS):
                    for j, other in enumerate(KINDS):
                        if cutlass.const_expr(i <= j):
                            cell = i * len(KINDS) + j
                            out = cute.make_tensor(y.iterator + (2 * cell + value), 1)
                            (one if value == 0 else other)(base + cell, cutlass.Int32(value), out)

    with sim.options(check=f"{check},-uninitialised"), collecting() as report:  # half of the cells are read alone
        launch(kernel, *(np.zeros(n * len(KINDS) ** 2, np.int32) for n in (1, 2)), grid=2, block=64)
    pairs: dict[tuple[str, ...], str] = {}
    for finding in report:
        assert finding.rule == "data-race"
        pairs[tuple(sorted(LINES[party.location.line] for party in finding.parties))] = finding.why
    return pairs


@pytest.mark.parametrize("check", ["races", "default"])
@pytest.mark.parametrize(
    ("where", "in_shared"), [("lane", False), ("lane", True), ("warp", False), ("warp", True), ("block", False)]
)
def test_every_pair_of_kinds(where: str, in_shared: bool, check: str) -> None:
    got = found(where, in_shared, check)
    names = [kind.__name__ for kind in KINDS]
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i:]]
    assert set(got) == {tuple(sorted(pair)) for pair in pairs if races(*pair, where)}
    for pair, why in got.items():
        assert words(*pair, where) in why, (pair, why)
