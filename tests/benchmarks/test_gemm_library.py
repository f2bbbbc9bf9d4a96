"""bench/gemm_library.py without a GPU: its jobs, what it compiles, its table; and on one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import gemm_library

    return gemm_library


def test_shapes_of_a_draw(bench: Any) -> None:
    drawn = bench.draw(64, 7)
    assert drawn == bench.draw(64, 7) != bench.draw(64, 8)
    assert all(extent % 8 == 0 and 128 <= extent <= 8192 for shape in drawn for extent in shape)


def test_jobs(bench: Any) -> None:
    def of(*given: str) -> list[Any]:
        found: list[Any] = bench.jobs_of(bench.arguments(list(given)))
        return found

    assert len(of()) == 8 + 6 + 64 + 24
    assert [job.shape for job in of("--sets", "--random", "32", "--seed", "7")] == bench.draw(32, 7)
    assert {job.kind for job in of("--sets", "--sharing", "--ampere", "--few")} == {"sharing", "ampere", "few"}
    assert [job.shape for job in of("--sets", "--shapes", "8,16,24")] == [(8, 16, 24)]
    both = of("--sets", "decode", "--limit", "1", "--dtypes", "f16", "bf16", "--b", "k", "n")
    assert [(job.dtype, job.b) for job in both] == [(d, b) for d in ("f16", "bf16") for b in "kn"]


def test_sides_of_each_kind_of_job(bench: Any) -> None:
    import library_jobs

    def sides(kind: str, shape: tuple[int, int, int]) -> list[str]:
        return [way.name for way in library_jobs.ways_of(library_jobs.Job(kind, "set", shape, "f16", "k"))]

    assert sides("compare", (256, 256, 256)) == ["tilewright"]
    shared = ["tilewright", "data-parallel", "Stream-K", "data-parallel 128x256", "Stream-K 128x256"]
    assert sides("sharing", bench.HOSTILE[0]) == shared
    assert sides("sharing", bench.HOSTILE[-1]) == [*shared, "data-parallel 128x128", "Stream-K 128x128"]
    for shape in library_jobs.EXAMPLE:
        names = dict.fromkeys(name.partition(library_jobs.IN)[0] for name in sides("ampere", shape))
        assert list(names)[:4] == list(library_jobs.EXAMPLE_SIDES)
    us = {"cuBLAS": 1.0, "split-K 2 in 128x128x32": 5.0, "split-K 2 in 128x256x32": 4.0}
    assert library_jobs.fastest_sizes(us) == {"cuBLAS": "cuBLAS", "split-K 2": "split-K 2 in 128x256x32"}
    assert sides("few", bench.FEW[0]) == ["tilewright", "few rows"]


def test_a_dry_run_compiles_what_would_be_launched(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--sets", "--shapes", "64,64,64", "--search", "--options", "2", "--dry-run", "--processes", "1"]
    assert bench.main(given) == 0
    printed = capsys.readouterr().out
    assert "64x64x64 f16 kk: tilewright: hopper_f16" in printed and "1 of 1 shapes" in printed


def test_the_table(bench: Any) -> None:
    def record(name: str, kernel: str, us: float, **more: Any) -> dict[str, Any]:
        return {"set": name, "mnk": [1, 2, 3], "dtype": "f16", "b": "k", "kernel": kernel, "us": us, **more}

    records = [record("s", "cuBLAS", 12.0), record("s", "tilewright", 10.0), record("s", "other", 9.0)]
    records += [
        record("sharing", name, us)
        for name, us in (
            ("cuBLAS", 8.0),
            ("tilewright", 10.0),
            ("data-parallel", 15.0),
            ("Stream-K", 12.0),
            ("data-parallel 128x256", 18.0),
            ("Stream-K 128x256", 12.0),
        )
    ]
    records += [record("t", name, us) for name, us in (("cuBLAS", 8.0), ("tilewright", 10.0), ("tuned", 5.0))]
    found = {key[0] + " " + key[4]: ratio for key, ratio in bench.ratios(records)}
    assert found == {
        "s of cuBLAS": 1.2,
        "s of the best size": 0.9,
        "sharing of cuBLAS": 0.8,
        "sharing Stream-K of data-parallel": 1.25,
        "sharing the choice of data-parallel": 1.5,
        "sharing Stream-K of data-parallel, both 128x256": 1.5,
        "t of cuBLAS": 0.8,
        "t tuned of cuBLAS": 1.6,
        "t the choice of tuned": 0.5,
    }


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["--search", "--tuned", "--sharing", "--ampere", "--few", "--behind"])
def test_gemm_library_benchmark_on_a_gpu(mode: str, bench: Any, tmp_path: Path) -> None:
    # The spacer's time is subtracted: a product of a few microseconds would be lost in its variation.
    shape = "2048,2048,2048" if mode == "--behind" else "256,384,512"
    shapes = ["--shapes", shape] if mode in ("--search", "--tuned", "--behind") else []
    more = ["small", "operand", "cold"] if mode == "--behind" else []
    given = ["--sets", *shapes, mode, *more, "--limit", "1", "--options", "4", "--processes", "2", "--rounds", "2"]
    assert bench.main([*given, "--write", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    records = json.loads(path.read_text())["records"]
    assert len({(one["kernel"], one["behind"]) for one in records}) >= 3 and all(one["us"] > 0 for one in records)


@pytest.mark.gpu
def test_kernels_compiled_ahead_are_those_launched() -> None:
    torch = pytest.importorskip("torch")
    from tilewright.gemm import launcher
    from tilewright.gemm.host import handle
    from tilewright.gemm.tuning.ahead import compile_ahead
    from tilewright.gemm.tuning.stand_in import stand_in

    for m, n, k in ((256, 384, 512), (318, 197, 819), (3976, 943, 3105)):
        compile_ahead(stand_in((m, n, k), "float16", None, "k", "k"))
        before = len(handle._COMPILED)
        a, b = (torch.randn(rows, k, device="cuda").half() for rows in (m, n))
        launcher(a, b.t(), a.new_empty(m, n))()
        assert len(handle._COMPILED) == before
