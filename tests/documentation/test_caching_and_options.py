"""After the documentation's pages "JIT caching" (dsl_jit_caching), "JIT compilation options"
(dsl_jit_compilation_options) and "Debugging" (debugging)."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute import EnableAssertions, GenerateLineInfo, KeepCUBIN, KeepPTX, OptLevel
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, TilewrightError


@cute.jit
def add(a, b, print_result: cutlass.Constexpr):
    if print_result:
        cute.printf("Result: %d\n", a + b)
    return a + b


def test_an_executor_takes_the_arguments_that_are_not_constexpr(capfd):
    jit_executor = cute.compile(add, 1, 2, True)
    assert capfd.readouterr().out == ""
    assert jit_executor(1, 2) == 3
    assert jit_executor(30, 12) == 42
    assert capfd.readouterr().out.split("\n")[:2] == ["Result: 3", "Result: 42"]
    quiet = cute.compile(add, 1, 2, False)
    assert quiet(5, 6) == 11 and capfd.readouterr().out == ""


def test_user_cache_of_compiled_kernels():
    @cute.jit
    def scale(x, factor: cutlass.Constexpr):
        return x * factor

    kernel_cache = {}
    for factor in (2, 3, 2, 3):
        key = (scale, factor)
        if key not in kernel_cache:
            kernel_cache[key] = cute.compile(scale, 1, factor)
        assert kernel_cache[key](7) == 7 * factor
    assert len(kernel_cache) == 2


def test_executors_of_functions_with_kernels():
    @cute.kernel
    def fill(out: cute.Tensor, value: cutlass.Float32):
        tidx, _, _ = cute.arch.thread_idx()
        out[tidx] = value

    @cute.jit
    def host(out: cute.Tensor, value: cutlass.Float32, threads: cutlass.Constexpr[int]):
        fill(out, value).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    out = np.zeros(8, np.float32)
    compiled = cute.compile(host, from_dlpack(out), 1.0, 4)
    compiled(from_dlpack(out), 2.5)
    assert out.tolist() == [2.5] * 4 + [0] * 4
    compiled(from_dlpack(out), value=3)
    assert out.tolist() == [3] * 4 + [0] * 4


def test_options_as_text_and_as_types():
    for compiled in (
        cute.compile(add, 1, 2, False, options="--opt-level 2"),
        cute.compile(add, 1, 2, False, options="--opt-level=2 --enable-assertions --keep-ptx --keep-cubin"),
        cute.compile[OptLevel(2)](add, 1, 2, False),
        cute.compile[OptLevel(2), EnableAssertions, GenerateLineInfo, KeepCUBIN, KeepPTX](add, 1, 2, False),
        cute.compile[(OptLevel(1), EnableAssertions(True), KeepPTX(True))](add, 1, 2, False),
    ):
        assert compiled(20, 22) == 42


@cute.kernel
def halve(out: cute.Tensor, n: cutlass.Int32):
    cute.testing.assert_(n % 2 == 0, "n is odd")
    out[0] = n // 2


@cute.jit
def run_halve(out: cute.Tensor, n: cutlass.Int32):
    halve(out, n).launch(grid=1, block=1)


def test_kept_files_are_written(tmp_path, monkeypatch):
    out = from_dlpack(np.zeros(1, np.int32))
    monkeypatch.chdir(tmp_path)
    compiled = cute.compile[KeepPTX, cute.GPUArch("sm_80")](run_halve, out, 4)
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".ptx" and kept.name.startswith("halve.") and kept.read_text() == compiled.__ptx__
    assert ".target sm_80" in kept.read_text()
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "kept"))
    compiled = cute.compile(run_halve, out, 4, options="--keep-cubin --gpu-arch sm_90a")
    assert compiled.__cubin__ in [f.read_bytes() for f in (tmp_path / "kept").glob("*.sm_90a.cubin")]


def test_machine_code_as_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = from_dlpack(np.zeros(1, np.int32))
    compiled = cute.compile[cute.KeepSASS, cute.GPUArch("sm_80")](run_halve, out, 4)
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".sass" and kept.read_text() == compiled.__sass__ and "EXIT" in compiled.__sass__


def test_the_variables_of_the_environment(tmp_path, monkeypatch, capsys):
    out = from_dlpack(np.zeros(1, np.int32))
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("CUTE_DSL_KEEP", "ir, ptx")
    monkeypatch.setenv("CUTE_DSL_PRINT_IR", "1")
    compiled = cute.compile(run_halve, out, 4, options="--gpu-arch sm_80")
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.suffix == ".ptx" and kept.read_text() == compiled.__ptx__
    assert "kernel @halve" in capsys.readouterr().out
    monkeypatch.setenv("CUTE_DSL_PRINT_IR", "0")
    cute.compile(run_halve, out, 4, options=f"--keep-ptx --gpu-arch sm_90a --dump-dir {tmp_path / 'named'}")
    assert [f.suffix for f in (tmp_path / "named").iterdir()] == [".ptx"] and [*(tmp_path / "kept").iterdir()] == [kept]
    monkeypatch.setenv("CUTE_DSL_KEEP", "")
    monkeypatch.setenv("CUTE_DSL_KEEP_CUBIN", "1")
    monkeypatch.setenv("CUTE_DSL_LINEINFO", "1")
    options = cute.compile(run_halve, out, 4, options="--gpu-arch sm_80").options
    assert options.keep_cubin and options.generate_line_info and not options.keep_ptx and not capsys.readouterr().out
    monkeypatch.setenv("CUTE_DSL_KEEP", "ptx,fatbin")
    with pytest.raises(ArgumentError, match="CUTE_DSL_KEEP: 'fatbin' is not one of ptx, cubin, sass, all"):
        cute.compile(run_halve, out, 4)


def test_marks_in_kernels_are_asked_for():
    from tilewright.lang.staging.ranges import HintWarning

    with pytest.warns(HintWarning, match="marks and ranges are not recorded here") as caught:
        compiled = cute.compile(run_halve, from_dlpack(np.zeros(1, np.int32)), 4, options="--opt-level 2 iket")
    assert caught[0].filename == __file__ and compiled.options.opt_level == 2


def test_assertions_can_be_left_out(tmp_path):
    array = np.zeros(1, np.int32)
    checked = cute.compile(run_halve, from_dlpack(array), 4)
    with pytest.raises(TilewrightError, match="n is odd"):
        checked(from_dlpack(array), 5)
    unchecked = cute.compile(run_halve, from_dlpack(array), 4, options="--enable-assertions=false")
    unchecked(from_dlpack(array), 5)
    assert array[0] == 2
    assert "n is odd" in str(checked.kernels[0]) and "n is odd" not in str(unchecked.kernels[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--keep-ptxx", "--keep-ptxx'; did you mean 'keep-ptx'"),
        ("--gpu-arch hopper", "unknown architecture 'hopper'"),
        ("--keep-ptx=perhaps", "true or false, not 'perhaps'"),
        ("--enable-tvm-ffi=false", "cannot be switched off"),
    ],
)
def test_wrong_option_values_are_errors(options, words):
    with pytest.raises(ArgumentError, match=words):
        cute.compile(add, 1, 2, False, options=options)


def test_options_reach_the_kernels():
    @cute.kernel
    def nothing(out: cute.Tensor):
        out[0] = 1.0

    @cute.jit
    def host(out: cute.Tensor):
        nothing(out).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    (kernel,) = cute.compile[OptLevel(1), GenerateLineInfo](host, out).kernels
    assert kernel.attrs["options"].opt_level == 1 and kernel.attrs["options"].generate_line_info
    with pytest.raises(ArgumentError, match="--fast"):
        cute.compile(host, out, options="--fast")
    with pytest.raises(ArgumentError, match="opt-level"):
        cute.compile(host, out, options="--opt-level 4")


def test_print_while_compiling_and_printf_while_running(capfd):
    @cute.kernel
    def look(x: cute.Tensor, n: cutlass.Int32):
        tidx, _, _ = cute.arch.thread_idx()
        print("compile time:", x.layout, n)
        if tidx == 1:
            cute.printf("run time: {} {}", x[tidx], n)
            cute.printf("tidx = %d, x = %.2f", tidx, x[tidx])

    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32):
        look(x, n).launch(grid=1, block=2)

    x = from_dlpack(np.array([0.5, 1.25], np.float32))
    compiled = cute.compile(host, x, 3)
    assert capfd.readouterr().out == "compile time: (2):(1) ?\n"
    compiled(x, 7)
    out = capfd.readouterr().out
    assert "run time: 1.25" in out and "7" in out and "tidx = 1, x = 1.25" in out and "compile" not in out
