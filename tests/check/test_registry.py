"""Which checkers a text chooses, and what a checker of one's own gets and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check.copies import tiles
from tests.check.pairs import launch, numbers
from tilewright import cute, sim
from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.checks import Checker, Finding, Party, enabled_checkers, registry
from tilewright.sim.checks.actors import lanes_of, thread_of
from tilewright.sim.checks.sites import kernel_facts


class Negative(Checker):
    """Reports stores of negative numbers."""

    def access(self, verb: str, buffer: Any, group: Any, off: Any, access: Any, mask: Any, values: Any) -> None:
        if verb == "store" and np.ndim(values) and (np.asarray(values) < 0).any():
            lane = lanes_of(group, mask)[np.flatnonzero(np.asarray(values) < 0)[0]]
            parties = [Party("store", group.lanes.op, thread_of(group, lane))]
            self.findings.add(Finding("negative", "a negative number is stored", parties))


@pytest.fixture
def negative(monkeypatch: pytest.MonkeyPatch) -> None:
    row = registry.Row("negative", "all", f"{__name__}.Negative", registry.every_kernel)
    monkeypatch.setattr(registry, "CHECKERS", (*registry.CHECKERS, row))
    monkeypatch.setattr("tilewright.sim.checks.run.CHECKERS", registry.CHECKERS)


@cute.kernel
def minus(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = 20.0 - t


def test_names_sets_and_exceptions(negative: None) -> None:
    assert "negative" not in enabled_checkers("default")
    assert enabled_checkers("negative") == {"negative": True}
    assert "negative" in enabled_checkers("all") and "negative" not in enabled_checkers("all,-negative")
    assert enabled_checkers("default,negative")["negative"] and not enabled_checkers("default,negative")["races"]
    assert enabled_checkers("none") == {} == enabled_checkers("none,-negative")
    with pytest.raises(ArgumentError, match="did you mean 'negative'"):
        enabled_checkers("negativ")


def test_a_checker_reports(negative: None) -> None:
    with sim.options(check="negative"), pytest.raises(SimulationError) as caught:
        launch(minus, numbers(32), block=32)
    assert "negative: a negative number is stored" in str(caught.value)
    assert "block (0, 0, 0), warp 0, lane 21 (thread (21, 0, 0))" in str(caught.value)
    (finding,) = caught.value.findings
    assert finding.kernel == "minus" and finding.parties[0].location.file == __file__


def test_rule_that_is_not_chosen_does_not_run(negative: None) -> None:
    with sim.options(check="all,-negative"):
        launch(minus, numbers(32), block=32)


def test_findings_name_the_roles_of_warps() -> None:
    with sim.options(check="races"), pytest.raises(SimulationError) as caught:
        tiles("no wait")
    assert "warp 0 (loads, stores), lane" in str(caught.value)


@cute.kernel
def moves(y: cute.Tensor):
    """Copies by cp.async and ldmatrix: instructions that reach shared memory, none by the async proxy."""
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 128, alignment=16), cute.make_layout((4, 32)))
    source = cute.make_tensor(y.iterator, cute.make_layout((4, 32)))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
    cute.copy(atom, source[None, t], s[None, t])
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    y[4 * t] = s[0, t]


@cute.kernel
def meets(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.sync_threads()
    y[t] = 1.0


@pytest.mark.parametrize(
    ("kernel", "also"),
    [(minus, set()), (moves, set()), (meets, {"divergence"})],
    ids=["plain", "cp.async", "barrier"],
)
def test_a_checker_looks_only_at_kernels_that_have_what_it_concerns(
    kernel: Any, also: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(
        "tilewright.sim.checks.run.kernel_facts", lambda program: seen.append(kernel_facts(program)) or seen[-1]
    )
    with sim.options(check="all"):
        launch(kernel, cute.runtime.from_dlpack(numbers(128), assumed_align=16), block=32)
    optional = {"proxies", "mbarriers", "exits", "divergence", "residency"}
    assert {c.name for c in registry.CHECKERS if c.concerns(seen[0])} & optional == also
