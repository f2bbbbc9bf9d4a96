"""Tuning: what is measured, what is remembered, and that no candidate can stop it. A program stands in for the process
that measures: it takes times from the candidates' names."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import own_files
from tilewright.cli import main
from tilewright.errors import ArgumentError, ConstraintError, MachineError
from tilewright.gemm import Major, SplitK, StreamK, matmul, tune
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import matmul as module
from tilewright.gemm.operators import repeated_call
from tilewright.gemm.tuning import store
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.gemm.tuning.tune import best_by_model, default_kernels, stand_in

pytestmark = pytest.mark.unchecked

WORKER = """
import json, os, sys, time
spec = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True}), flush=True)
for number, line in enumerate(sys.stdin):
    one = json.loads(line)
    tile = one["size"].get("tile", [128, 256, 64])
    rows = tile[0]
    if MODE == "hang" and tile == BAD: time.sleep(600)
    if MODE == "crash" and tile == BAD: os._exit(3)
    if MODE == "wrong" and tile == BAD: print(json.dumps({"failure": "the result is wrong"}), flush=True); continue
    us = 10.0 if tile == BEST and one["shares"] is None else 20.0 + tile[1] / 1000
    if MODE in ("packed", "as they lie"): us = 10.0 + tile[1] / 1000 + 10 * (one["packed"] != (MODE == "packed"))
    print(json.dumps({"us": us}), flush=True)
"""


@pytest.fixture
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(store, "_READ", {})
    return tmp_path


def worker(tmp_path: Path, mode: str, best: list[int], bad: list[int]) -> list[str]:
    path = tmp_path / "worker.py"
    path.write_text(f"MODE, BEST, BAD = {mode!r}, {best!r}, {bad!r}\n{WORKER}")
    return [sys.executable, str(path)]


def ways(count: int = 12) -> list[Candidate]:
    return best_by_model(stand_in((512, 512, 1024), "float16", None, "k", "n"), count)


def tile(candidate: Candidate) -> list[int]:
    return list(candidate.entry.config.tile)


@pytest.mark.parametrize("mode", ["fine", "hang", "crash", "wrong"])
def test_the_fastest_is_found_remembered_and_used(mode: str, remembered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ways()
    best = next(way for way in reversed(listed) if way.shares is None and tile(way) != tile(listed[0]))
    bad = next(tile(way) for way in listed if tile(way) not in (tile(best), tile(listed[0]), [128, 256, 64]))
    monkeypatch.setattr("tilewright.gemm.tuning.tune.STOPPED_AFTER", 1.0)
    command = worker(remembered, mode, tile(best), bad)
    found = tune((512, 512, 1024), candidates=12, seconds=60.0, progress=False, command=command)
    assert tile(found.best) == tile(best) and found.best.shares is None and found.us == 10.0
    assert found.default == listed[0] and found.default_us > 20.0 and found.complete
    reasons = {"hang": "stopped after 1 seconds", "crash": "exit code 3", "wrong": "the result is wrong"}
    expected = {str(way) for way in listed if tile(way) == bad} if mode != "fine" else set()
    assert set(found.failed) == expected
    assert all(reasons[mode] in reason for reason in found.failed.values())
    if mode != "fine":
        return
    monkeypatch.setattr(store, "_READ", {})  # as in another process
    taken: list[Any] = []
    plan_of = module.Plan.of
    monkeypatch.setattr(module.Plan, "of", lambda *args: taken.append(plan_of(*args)) or taken[-1])
    a, b = (np.random.default_rng(0).integers(-2, 3, s).astype(np.float16) for s in ((512, 1024), (1024, 512)))
    d = matmul(a, b)
    np.testing.assert_array_equal(d.astype(float), a.astype(float) @ b.astype(float))
    assert list(taken[0].config.tile) == tile(best)


@pytest.mark.parametrize(
    "asked", [{"kernel": "tensorop_f16"}, {"decomposition": "data_parallel"}, {"decomposition": SplitK(2)}], ids=str
)
def test_explicit_choices_bypass_stored_tuning(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Problem] = []
    monkeypatch.setattr(store, "find", looked_up.append)
    a, b = np.ones((40, 64), np.float16), np.ones((64, 48), np.float16)
    assert (matmul(a, b, **asked) == 64).all() and not looked_up
    assert (matmul(a, b) == 64).all() and looked_up


def test_stored_tuning_is_not_used_for_another_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of float32 matrices it is for the precision that is there by default."""
    monkeypatch.setattr(store, "find", lambda problem: Candidate("simt_f32", (), None))
    a, b = np.full((40, 64), 1 + 2.0**-20, np.float32), np.ones((64, 48), np.float32)
    assert (matmul(a, b, precision="tf32") == 64).all()
    assert (matmul(a, b) > 64).all()  # by how much depends on the order of the sum


def test_candidates_are_the_models_best_and_can_be_written_down() -> None:
    listed = ways(40)
    assert len(set(listed)) == 40 and len({str(way) for way in listed}) == 40
    for way in listed:
        again = Candidate.from_json(json.loads(json.dumps(way.to_json())))
        assert again == way and again.entry.config == way.entry.config
        plan = way.decomposition((512, 512, 1024, 1), 132, 232448)
        assert (plan == "data_parallel") == (way.shares is None)
        assert way.shares is None or (plan.sk_tiles, plan.sk_blocks) == way.shares


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"64", b"32", 1),
        lambda data: data[:-5],
        lambda data: b"",
        lambda data: b"\xff\n{}",
    ],
)
def test_a_damaged_file_counts_as_empty(damage: Any, remembered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.keep("x", ways(1)[0])
    assert store.read(path) == {"x": ways(1)[0]}
    assert os.stat(path.parent).st_mode & 0o77 == 0
    path.write_bytes(damage(path.read_bytes()))
    assert store.read(path) == {}
    other = path.with_name("0" * 32 + ".json")  # another GPU's
    store.keep("x", ways(1)[0])
    path.rename(other)
    assert store.read(other) == {}


@pytest.mark.parametrize(
    "one",
    [
        {"kernel": "none", "size": {}, "shares": None},
        {"kernel": "hopper_f16", "size": {"tile": [1, 2]}, "shares": None},
        {"kernel": "hopper_f16", "size": {"tile": [64, 65, 64]}, "shares": None},
        {"kernel": "hopper_f16", "size": {"a": 1}, "shares": None},
        {"kernel": "hopper_f16", "size": {"stages": -1}, "shares": None},
        {"kernel": "hopper_f16", "size": {"roles": "none"}, "shares": None},
        {"kernel": "hopper_f16", "shares": None},
        7,
    ],
)
def test_invalid_candidates_are_refused(one: Any) -> None:
    with pytest.raises((ArgumentError, ConstraintError)):
        _ = Candidate.from_json(one).entry


def test_a_source_tree_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise store.importlib.metadata.PackageNotFoundError(name)

    installed = store.gpu_digest.__wrapped__()
    monkeypatch.setattr(store.importlib.metadata, "version", missing)
    assert store.gpu_digest.__wrapped__() != installed


def test_mistakes(remembered: Path) -> None:
    for shape, words, message in (
        ((512, 512), {}, "shape must be"),
        ((512, 512, 0), {}, "positive integer"),
        ((512, 512, 512), {"dtype": "nonsense"}, "there is no dtype"),
        ((512, 512, 512), {"b_major": "m"}, "b_major"),
        ((512, 512, 512), {"dtype": "complex64"}, "complex64"),
        ((512, 512, 512), {"candidates": 0}, "candidates"),
    ):
        with pytest.raises(ArgumentError, match=message):
            tune(shape, progress=False, **words)
    with pytest.raises(MachineError, match="exit code 7"):
        tune((512, 512, 512), progress=False, command=[sys.executable, "-c", "raise SystemExit(7)"])


def test_a_product_that_was_multiplied_before_takes_what_tuning_found(remembered: Path) -> None:
    """Also one that was launched from another number of rows; and the calls of other operators are planned anew."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.integers(-2, 3, s).astype(np.float16)) for s in ((80, 64), (64, 48)))
    exact, tiles = a.double() @ b.double(), list[list[Any]]()
    other = next(way for way in ways() if way.shares is None)
    module.forget()
    for turn in range(3):
        if turn == 2:
            kept: Any = object()
            repeated_call.CALLS["another"] = repeated_call.OPEN["another"] = kept
            for rows in (80, 72):
                key = store.problem_key(Problem.of(a[:rows], b, None, torch.empty(rows, 48).half()))
                assert key is not None
                store.keep(key, other)
            assert not module.REPEATED_PRODUCTS and not repeated_call.CALLS and not repeated_call.OPEN
        for rows in (80, 72):
            assert torch.equal(matmul(a[:rows], b).double(), exact[:rows])
        tiles.append([list(seen.prepared.plan.config.tile) for seen in module.REPEATED_PRODUCTS.values()])
    assert tiles[0] == tiles[1] and tiles[0][0] != tile(other)
    assert tiles[2] == [tile(other)] * 2


@pytest.mark.parametrize("mode", ["packed", "as they lie"])
@pytest.mark.parametrize(("c", "bias"), [(False, False), (True, False), (False, True)])
def test_unaligned_matrices_are_tuned_with_copies_and_without(
    mode: str, c: bool, bias: bool, remembered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fastest is what matmul takes; with a bias, which is as long as D's rows, D is not copied."""
    torch = pytest.importorskip("torch")
    m, n, k = 72, 66, 131
    found = tune((m, n, k), candidates=40, seconds=60.0, progress=False, command=worker(remembered, mode, [], []))
    assert found.best.packed is (mode == "packed") and not found.failed
    assert found.best.kernel == ("hopper_f16" if found.best.packed else "tensorop_f16")
    monkeypatch.setattr(store, "_READ", {})  # from the file
    monkeypatch.setattr(module, "REPEATED_PRODUCTS", {})
    words: dict[str, Any] = {"c": torch.ones(m, n).half(), "beta": 3.0} if c else {}
    words |= {"bias": torch.arange(n).half()} if bias else {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = (torch.from_numpy(rng.integers(-2, 3, s).astype(np.float16)) for s in ((m, k), (k, n)))
        expected = a.double() @ b.double() + 3.0 * c + (torch.arange(n) if bias else 0)
        assert torch.equal(matmul(a, b, **words).double(), expected)
    ((key, seen),) = module.REPEATED_PRODUCTS.items()
    names = seen.prepared.plan.packing.names if seen.prepared.plan.packing else ()
    assert key is not None and set(names) == ({"A", "B", "D", *"C" * c} if mode == "packed" and not bias else set())
    # The same extents in rows that begin at multiples of 16 bytes are another problem.
    padded = torch.zeros(m, 136).half()[:, :k]
    assert store.problem_key(Problem.of(padded, b, None, torch.empty(m, n).half())) not in store.tuned()


def test_tuning_lists_plans_with_and_without_packing() -> None:
    """The library's own choice first; both ways, each with a time for what it does."""
    problem = stand_in((2048, 2000, 2047), "float16", None, "k", "k")
    listed = best_by_model(problem, 600)
    plan = Plan.of(problem, default_kernels(problem), "auto", "gpu", may_pack="ABCD")
    assert plan.packing is not None and listed[0].packed and listed[0].entry.config.tile == plan.config.tile
    assert {way.packed for way in listed} == {True, False} and len(set(listed)) == len(listed)
    small = best_by_model(stand_in((33, 31, 65), "float16", None, "k", "k"), 8)
    assert not small[0].packed
    for way in (listed[0], small[0]):
        assert Candidate.from_json(json.loads(json.dumps(way.to_json()))) == way
    aligned = stand_in((512, 512, 512), "float16", None, "k", "k")
    with pytest.raises(ArgumentError, match="copies of 512 x 512 x 512 do not help kernel hopper_f16"):
        listed[0].plan(aligned, "cpu")


def test_files_from_before_copies_were_tried(remembered: Path) -> None:
    """They name neither copies nor sums that are added up together; their problems are found under the same names."""
    problem = stand_in((512, 512, 1024), "float16", None, "k", "n")
    key = "512x512x1024x1 Float16 K Float16 MN Float16 K"
    assert store.problem_key(problem) == key.replace("K", Major.K.value).replace("MN", Major.MN.value)
    one = best_by_model(problem, 1)[0]
    written = {name: value for name, value in one.to_json().items() if name in ("kernel", "size", "shares")}
    body = json.dumps({store.problem_key(problem): written}).encode()
    path = store.place()
    own_files.write(path, store.checksum(path.name, body) + b"\n" + body)
    assert store.find(problem) == one


def test_the_command_says_where_it_cannot_measure(remembered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["tune", "512", "512", "512"]) == 2
    assert "PyTorch sees none" in capsys.readouterr().err


@pytest.mark.gpu
def test_tuning_on_a_gpu(remembered: Path) -> None:
    torch = pytest.importorskip("torch")
    found = tune((320, 1736, 6592), candidates=6, seconds=90.0, progress=False)
    assert not found.failed and found.us <= found.default_us
    a, b = torch.randn(320, 6592, device="cuda").half(), torch.randn(6592, 1736, device="cuda").half()
    torch.testing.assert_close(matmul(a, b), a @ b, rtol=1e-2, atol=1e-1)


@pytest.mark.gpu
def test_unaligned_matrices_on_a_gpu(remembered: Path) -> None:
    """Tuned, with the copies on the stream of the call, and in a graph whose memory is its own."""
    torch = pytest.importorskip("torch")
    m, n, k = 1023, 1025, 2047
    found = tune((m, n, k), b_major="k", candidates=6, seconds=90.0, progress=False)
    assert not found.failed and found.us <= found.default_us and found.default.packed
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(n, k, device="cuda").half().t()
    out = torch.empty(m, n, device="cuda", dtype=torch.float16)
    for _ in range(2):
        torch.testing.assert_close(matmul(a, b), a @ b, rtol=1e-2, atol=1e-1)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        matmul(a, b, out)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            matmul(a, b, out)
    a.copy_(torch.randn(m, k, device="cuda"))
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, a @ b, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("shape", [(616, 216, 6560), (136, 512, 32768), (512, 512, 1024)], ids=str)
def test_the_librarys_own_choice_comes_first(shape: tuple[int, int, int]) -> None:
    """Also where options that it does not consider have a lower estimate."""
    problem = stand_in(shape, "float16", None, "k", "k")
    first = best_by_model(problem, 4)[0]
    plan = Plan.of(problem, default_kernels(problem), "auto", "gpu")
    shares = None if plan.shares is None else (plan.shares.sk_tiles, plan.shares.sk_blocks)
    assert (first.entry.config, first.shares) == (plan.entry.config, shares)
    assert first.together is (plan.shares is not None and plan.shares.shared_reduction)
    assert first.plan(problem, "gpu") == replace(plan, entry=plan.entry.only(plan.entry.config), passed_over={})


def test_measured_candidates_equal_the_launched_plan() -> None:
    """Of mma.sync kernels, too, where a plan that is given has blocks that only add up, and an order of its own."""
    problem = stand_in((200, 264, 9001), "float16", None, "k", "k")
    entries = [entry for entry in default_kernels(problem) if entry.name == "tensorop_f16"]
    plan = Plan.of(problem, entries, "stream_k", "gpu")
    assert isinstance(plan.shares, StreamK)
    way = Candidate.of(plan.entry, plan.shares).plan(problem, "gpu")
    assert (way.config, way.shares, way.numbered) == (plan.config, plan.shares, False)
