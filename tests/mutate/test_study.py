"""The mutation study notices what matters, calls equivalent what does not, and puts the kernel back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.mutate import programs as p
from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.mutation import KnownEquivalent, KnownList, Study, as_json, study, table


def of(act: Callable[[], object], **options: object) -> Study:
    return study(act, **options)


def verdicts(found: Study) -> dict[tuple[str, str], tuple[str, str]]:
    return {(o.mutant.instruction, o.mutant.what): (o.verdict, o.by) for o in found.outcomes}


def reversing() -> np.ndarray:
    x, y = p.floats(), np.zeros(p.N, np.float32)
    p.run_reversing(x, y)
    return y


def test_a_barrier_that_is_needed_one_that_is_not_and_one_not_executed() -> None:
    found = of(reversing)
    by_line = {o.mutant.location.line: o for o in found.outcomes if o.mutant.location is not None}
    source = Path(p.__file__).read_text().split("\n")
    told = {source[line - 1].split("# ")[1]: (o.verdict, o.by) for line, o in by_line.items()}
    assert told["needed"][0] == "noticed" and "data-race" in told["needed"][1]
    assert told["not needed"] == ("missed", "")
    assert told["not executed"] == ("equivalent", "not executed in this launch")
    assert found.score == 0.5


def test_the_launch_ends_with_its_own_result_and_kernel() -> None:
    seen = []
    of(lambda: seen.append(reversing()))
    seen.append(reversing())
    for y in seen:
        np.testing.assert_array_equal(y, p.floats()[::-1])


def test_known_mutants_are_equivalent() -> None:
    where = {"before": "y[t] = s[N - 1 - t]", "instruction": "bar.sync.all", "change": "removed"}
    known = KnownList([KnownEquivalent("programs.py", "# not needed", "nothing follows", **where)])
    found = of(reversing, known=known)
    assert [o.by for o in found.of("equivalent")] == ["nothing follows", "not executed in this launch"]
    assert found.score == 1.0
    for changed in ("before", "instruction", "change"):
        other = KnownList(
            [KnownEquivalent("programs.py", "# not needed", "nothing follows", **(where | {changed: "another"}))]
        )
        assert of(reversing, known=other).score == 0.5


@pytest.mark.parametrize("text", ["{", '[{"file": "x"}]', "3"])
def test_invalid_list_of_known_mutants_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match="is not a list of known mutants"):
        KnownList.read(path)


def test_mbarriers() -> None:
    x, y = p.floats(), np.zeros(32, np.float32)
    told = verdicts(of(lambda: p.run_handed_over(x, y)))
    noticed = {
        ("mbarrier.init", "removed"): "fault",
        ("mbarrier.init", "one arrival more"): "deadlock",
        ("mbarrier.init", "one arrival fewer"): "fault",
        ("mbarrier.arrive", "removed"): "deadlock",
        ("mbarrier.arrive", "arrives twice"): "fault",
        ("mbarrier.wait", "removed"): "data-race",
        ("mbarrier.wait", "waits for the other parity"): "deadlock",
    }
    for change, by in noticed.items():
        verdict, found = told[change]
        assert verdict == "noticed" and by in found, (change, verdict, found)


def test_groups_of_cp_async() -> None:
    x, y = p.floats(), np.zeros(p.N, np.float32)
    told = verdicts(of(lambda: p.run_copied(x, y)))
    for change in (("commit_group", "removed"), ("wait_group 0", "removed"), ("wait_group 0", "leaves one group more")):
        verdict, by = told[f"cp.async.{change[0]}", change[1]]
        assert verdict == "noticed" and "data-race" in by, (change, verdict, by)


def test_orders_and_scopes() -> None:
    x, y = p.floats(), np.zeros(96, np.float32)
    found = of(lambda: p.run_ticketed(x, y, np.zeros(1, np.int32)))
    told = verdicts(found)
    for change in ("acquire, not acq_rel", "release, not acq_rel", "relaxed, not acq_rel", "scope cta"):
        verdict, by = told["atom.acq_rel.gpu.add", change]
        assert verdict == "noticed" and "data-race" in by, (change, verdict, by)


def test_a_kernel_that_is_not_clean_itself_ends_the_study() -> None:
    def act() -> None:
        p.run_reversing(p.floats()[:8], np.zeros(p.N, np.float32))

    with pytest.raises(SimulationError, match="out of bounds"):
        of(act)


def test_further_launches_of_a_kernel_just_run() -> None:
    seen = []
    found = of(lambda: seen.extend([reversing(), reversing()]))
    assert len(found.outcomes) == 3 and len(of(lambda: [reversing(), reversing()], launches=2).outcomes) == 6
    np.testing.assert_array_equal(seen[1], p.floats()[::-1])


def test_the_table_and_the_json() -> None:
    found = of(reversing)
    text = table(found)
    assert "programs.py:" in text and "50.0 %" in text and "noticed by: data-race" in text
    assert len(table(found, all_of_them=True).split("\n")) == len(text.split("\n")) + 1
    data = json.loads(as_json(found))
    assert (data["noticed"], data["equivalent"], data["missed"], data["score"]) == (1, 1, 1, 0.5)
    assert {m["change"] for m in data["mutants"]} == {"removed"} and all(m["line"] for m in data["mutants"])
