"""Arrays that numpy.empty, torch.empty and their like made: marked while a program runs under the checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright import cute, sim
from tilewright.cli.app import app
from tilewright.gemm import gemm
from tilewright.sim import empty_arrays, marking_empty_arrays
from tilewright.sim.checks import collecting
from tilewright.sim.empty_arrays import PATTERN, UninitialisedBytes


def undefined(x: Any, granule: int = 8) -> list[bool]:
    """Of the elements of a NumPy array, whether the check takes them for unwritten."""
    start = x.__array_interface__["data"][0]
    base = start & -8
    data = np.lib.stride_tricks.as_strided(x.reshape(-1).view(np.uint8), (x.nbytes,), (1,))
    assert start == base  # NumPy aligns what it allocates
    return UninitialisedBytes(data, granule).at(np.arange(x.size) * x.itemsize).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_an_unwritten_element_is_not_a_number(dtype: str) -> None:
    with marking_empty_arrays():
        x = np.empty(5, dtype)
    assert np.isnan(x).all()


def test_numpy_is_as_before_afterwards() -> None:
    before = np.empty, np.empty_like
    with marking_empty_arrays():
        with marking_empty_arrays():
            assert np.empty is not before[0]
        kept = np.empty
        assert np.empty(3, np.float32).tobytes() == (PATTERN * 2)[:12]
    assert (np.empty, np.empty_like) == before
    assert kept(8, np.float32).shape == (8,)  # taken by `from numpy import empty` while it was another


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill(0),
        lambda x: np.add(1, 2, out=x),
        lambda x: np.copyto(x, 3),
        lambda x: x.__setitem__(..., 1),
        lambda x: x.view(np.uint8).__setitem__(slice(None), 255),
    ],
)
@pytest.mark.parametrize("dtype", ["int8", "float16", "int32", "float64"])
def test_host_writes_define_marked_arrays(write: Any, dtype: str) -> None:
    with marking_empty_arrays():
        x = np.empty(64, dtype)
    assert all(undefined(x))
    write(x)
    assert not any(undefined(x, 4))


def test_granules_of_bytes_of_which_one_is_written() -> None:
    with marking_empty_arrays():
        x = np.empty(21, np.int8)
    x[9] = 0
    assert undefined(x) == [True] * 8 + [False] * 8 + [True] * 4 + [False]


def test_elements_of_four_bytes_have_granules_of_their_own_where_they_are_floating() -> None:
    with marking_empty_arrays():
        x = np.empty(5, np.float32)
    x[1::2] = 0
    assert undefined(x, 4) == [True, False] * 2 + [True]
    assert undefined(x, 8) == [False] * 4 + [True]


def test_random_bytes_are_no_pattern() -> None:
    x = np.random.default_rng(0).integers(0, 256, 1 << 22, np.uint8)
    assert not UninitialisedBytes(x, 4).any()


LINES = "import numpy as np\nx = np.empty(64, np.float32)\nx[:] = 0\ny = np.empty_like(x)"


def test_benchmark_workspaces_may_be_uninitialised() -> None:
    x = np.ones(64, np.float32)
    with marking_empty_arrays(), sim.options(check="all"), collecting() as report:
        cute.testing.benchmark(
            host,
            workspace_generator=lambda: cute.testing.JitArguments(x, np.empty(64, np.float32)),
            workspace_count=2,
            warmup_iterations=1,
            iterations=3,
        )
        y = np.empty(64, np.float32)
        cute.testing.benchmark(host, kernel_arguments=cute.testing.JitArguments(x, y), iterations=1)
    assert report.rules == []


def test_memory_that_is_given_out_again_belongs_to_the_array_that_has_it_now() -> None:
    memory = np.zeros(256, np.uint8)
    low = memory.__array_interface__["data"][0]
    with marking_empty_arrays():
        for start, end, name in ((0, 64, "first"), (64, 128, "second"), (32, 256, "third")):
            empty_arrays.mark_made_at(None, low + start, end - start, name)
    assert empty_arrays.marked_array_at(low) is None and empty_arrays.marked_array_at(low + 40) is not None
    assert {str(empty_arrays.marked_array_at(low + at)) for at in (32, 63, 64, 127, 128, 255)} == {"third"}


def test_an_array_that_is_gone_is_forgotten() -> None:
    with marking_empty_arrays():
        x = np.empty(64, np.float32)
        part = x[8:16]
    low = x.__array_interface__["data"][0]
    del x
    assert empty_arrays.marked_array_at(low) is not None  # a part of it lives
    del part
    assert empty_arrays.marked_array_at(low) is None


def test_empty_arrays_of_libraries_are_not_marked() -> None:
    with marking_empty_arrays():
        code = compile(
            "import numpy as np\nx = np.empty(64, np.float32)\nx[:] = 0\ny = np.empty_like(x)", "f.py", "exec"
        )
        for name, expected in (("__main__", True), ("tilewright.gemm.host", False), ("torch.nn", False)):
            space: dict[str, Any] = {"__name__": name}
            exec(code, space)
            start = space["y"].__array_interface__["data"][0]
            found = empty_arrays.marked_array_at(start)
            assert (
                found is not None
                and found.low == start
                and found.where is not None
                and found.where.line == 4
                and all(undefined(space["y"]))
            ) == expected


@pytest.mark.parametrize("dtype", [object, "U5", bool, np.dtype([("a", "f4"), ("b", "O")]), np.float32])
def test_odd_arrays_are_left_alone(dtype: Any) -> None:
    with marking_empty_arrays():
        assert np.empty((2, 0, 3), dtype).size == 0
        x = np.empty(4, dtype)
        x[:] = np.zeros(4, dtype)
    assert (x == np.zeros(4, dtype)).all()


@cute.kernel
def add(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = y[t] + x[t]


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    add(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def rules(x: Any, y: Any) -> list[str]:
    with sim.options(check="all"), collecting() as report:
        host(x, y)
    return report.rules


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(64)
    with marking_empty_arrays():
        made = [
            torch.empty(64),
            torch.empty_like(x),
            x.new_empty(64),
            torch.empty_strided((64,), (1,)),
            torch.empty(2, 64)[1],
            torch.empty(64).clone(),
            torch.empty(64).double().float(),
        ]
        written = [
            torch.empty(64).fill_(1),
            torch.empty(64).copy_(x),
            torch.zeros_like(x),
            torch.add(x, x),
            torch.empty(64).normal_(),
            torch.mul(x, 2, out=torch.empty(64)),
        ]
        assert [rules(x, y) for y in made[:-1]] == [["uninitialised"]] * (len(made) - 1)
        assert [rules(x, y) for y in written] == [[]] * len(written)
        assert torch.empty(3, device="meta").shape == (3,)
    assert "new_empty" not in vars(torch.Tensor)


def test_a_finding_names_the_place_where_the_array_was_made() -> None:
    with marking_empty_arrays(), sim.options(check="all"), collecting() as report:
        y = np.empty(64, np.float32)
        y[:40] = 0
        host(np.ones(64, np.float32), y)
    (finding,) = report
    text = str(finding)
    assert "made uninitialised by numpy.empty, at" in text and "y = np.empty(64, np.float32)" in text
    assert finding.memory is not None and finding.memory.element == (40,) and finding.count == 24


def test_empty_arrays_are_not_marked_by_default() -> None:
    y = np.empty(64, np.float32)
    y[:] = np.frombuffer(PATTERN, np.float32)[0]
    expected = y + 1
    with sim.options(check="all"):
        host(np.ones(64, np.float32), y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("decomposition", ["data_parallel", "stream_k"])
def test_the_librarys_outputs_and_workspaces_are_written_before_they_are_read(decomposition: str) -> None:
    a, b = np.ones((130, 96), np.float16), np.ones((96, 136), np.float16)
    with marking_empty_arrays(), sim.options(check="all"):
        out = np.empty((130, 136), np.float16)
        gemm(a, b, out=out, machine="cpu", decomposition=decomposition)
    assert (out == 96).all()


SCRIPT = """
import numpy as np
from tests.check.test_empty_arrays import host

x = np.ones(64, np.float32)
{make}
host(x, y)
"""


@pytest.mark.parametrize(
    ("make", "code"),
    [
        ("y = np.empty(64, np.float32)", 1),
        ("y = np.zeros(64, np.float32)", 0),
        ("import torch; x, y = torch.from_numpy(x).cuda(), torch.empty(64, device='cuda')", 1),
        ("import torch; x, y = torch.from_numpy(x).cuda(), torch.empty(64).cuda()", 1),
        ("import torch; x, y = torch.from_numpy(x).cuda(), torch.empty(64, device='cuda').zero_()", 0),
    ],
)
def test_a_script_is_checked(tmp_path: Path, make: str, code: int) -> None:
    if "torch" in make:
        pytest.importorskip("torch")
    script = tmp_path / "add.py"
    script.write_text(SCRIPT.format(make=make))
    found = CliRunner().invoke(app, ["check", str(script)])
    assert found.exit_code == code, found.output
    assert ("reaches a result" in found.output) == bool(code)
    assert CliRunner().invoke(app, ["check", "--check", "default", str(script)]).exit_code == 0


def test_memory_of_the_driver(tmp_path: Path) -> None:
    script = tmp_path / "add.py"
    script.write_text("""
import sys
import cuda.bindings.runtime as runtime
import cutlass
from cutlass import cute

@cute.kernel
def add(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = y[t] + 1.0

@cute.jit
def host(y: cute.Pointer):
    add(cute.make_tensor(y, cute.make_layout(64))).launch(grid=(1, 1, 1), block=(64, 1, 1))

_, address = runtime.cudaMalloc(256)
if "set" in sys.argv:
    runtime.cudaMemset(address, 0, 256)
host(cute.runtime.make_ptr(cutlass.Float32, int(address), cute.AddressSpace.gmem, assumed_align=16))
""")
    found = CliRunner().invoke(app, ["check", str(script)])
    assert found.exit_code == 1 and "by cuMemAlloc" in found.output, found.output
    assert CliRunner().invoke(app, ["check", str(script), "set"]).exit_code == 0


TESTS = """
import numpy as np
from tests.check.test_empty_arrays import host

def go(y):
    host(np.ones(64, np.float32), y)

def test_bug(): go(np.empty(64, np.float32))
def test_twin(): go(np.zeros(64, np.float32))
def test_report(tilewright_check):
    y = np.empty(64, np.float32)
    with tilewright_check("all") as report:
        go(y)
    assert report.rules == ["uninitialised"]
"""


def test_a_librarys_tests(tmp_path: Path) -> None:
    (tmp_path / "test_library.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tilewright.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--tilewright-check=all", "test_library.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 failed, 2 passed" in done.stdout and "y[t] = y[t] + x[t]" in done.stdout, done.stdout


def test_results_of_jax_calls() -> None:
    jax = pytest.importorskip("jax")
    from tilewright.jax import cutlass_call

    @cute.jit
    def call(stream: Any, x: cute.Tensor, y: cute.Tensor):
        add(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)

    x = jax.numpy.ones(64, jax.numpy.float32)
    run = cutlass_call(call, output_shape_dtype=jax.ShapeDtypeStruct((64,), jax.numpy.float32))
    with marking_empty_arrays(), sim.options(check="all"), collecting() as report:
        jax.block_until_ready(run(x))
    assert report.rules == ["uninitialised"]
