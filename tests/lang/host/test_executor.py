"""Compiled functions: what they take, what they refuse, what they cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tests.counting import calls_in
from tests.lang.host.programs import THREADS, arrays, scale, scale_kernel
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, MachineError
from tilewright.lang.launch import options
from tilewright.lang.launch.machine import machine_of


def test_compile_then_call_with_run_time_arguments_only():
    x, y = arrays()
    compiled = cute.compile(scale, x, y, 3.0, True)
    compiled(x, y, 1.5)
    assert np.array_equal(y, x * 3.0)
    with pytest.raises(ArgumentError, match="takes? 3 arguments .x, y, factor., got 4; Constexpr"):
        compiled(x, y, 1.5, True)


def test_bound_calls_read_their_arguments_once():
    x, y = arrays()
    compiled = cute.compile(scale, x, y)
    bound = compiled.bind(y=y, x=x, factor=3)
    for _ in range(2):
        y[:] = 0
        bound()
        assert np.array_equal(y, x * 3.0)
    with pytest.raises(ArgumentError, match="the argument 'y' is missing"):
        compiled.bind(x)
    with pytest.raises(ArgumentError, match="argument 'y': expected"):
        compiled.bind(x, y.astype(np.int32))


def test_defaults_and_keywords():
    x, y = arrays()
    compiled = cute.compile(scale, x, y)
    compiled(x, y)
    assert np.array_equal(y, x * 2.0)
    compiled(y=y, x=x, factor=5)
    assert np.array_equal(y, x * 5.0)
    with pytest.raises(ArgumentError, match="the argument 'y' is missing"):
        compiled(x)
    for given in ((x, y), (x, y, 2.0)):  # also where the others are all there
        with pytest.raises(ArgumentError, match="no run-time argument 'z'"):
            compiled(*given, z=1)


def test_one_program_for_all_shapes_of_plain_arrays():
    x, y = arrays(10)
    compiled = cute.compile(scale, x, y, 2.0)
    for n in (1, 63, 64, 65, 1000):
        a, b = arrays(n)
        compiled(a, b, 0.5)
        assert np.array_equal(b, a * 0.5)
    base = np.arange(40, dtype=np.float32)
    compiled(base[20:], base[:20], 1.0)
    assert np.array_equal(base[:20], base[20:])


def test_torch_and_numpy_meet_in_one_executor():
    x, y = torch.arange(50, dtype=torch.float32), torch.zeros(50)
    compiled = cute.compile(scale, x, y, 2.0)
    compiled(x, y, 4.0)
    assert torch.equal(y, x * 4)
    a, b = arrays(30)
    compiled(a, b, 4.0)
    assert np.array_equal(b, a * 4)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda x, y: (x.double(), y, 1.0), "argument 'x': expected .*f32.*, got .*f64"),
        (lambda x, y: (x, y.reshape(5, 10), 1.0), r"argument 'y': expected .*\(\?\):\(1\).*, got .*\(\?,\?\)"),
        (lambda x, y: (x[::2], y, 1.0), r"argument 'x': expected .*\(\?\):\(1\).*, got .*\(\?\):\(\?\)"),
        (lambda x, y: (x, y, "fast"), "argument 'factor': expected a number .Float32., got 'fast'"),
        (lambda x, y: (x, y, None), "argument 'factor': expected a number .Float32., got None"),
        (lambda x, y: (x, 7, 1.0), "argument 'y': "),
    ],
)
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_arguments_that_do_not_fit(make, match, library):
    x, y = torch.arange(50, dtype=torch.float32), torch.zeros(50)
    compiled = cute.compile(scale, x, y, 2.0)
    args = make(x, y)
    if library == "numpy":
        args = tuple(a.numpy() if isinstance(a, torch.Tensor) else a for a in args)
    with pytest.raises(ArgumentError, match=match):
        compiled(*args)


def test_static_layouts_are_part_of_the_program():
    x, y = arrays(64)
    compiled = cute.compile(scale, from_dlpack(x), from_dlpack(y), 2.0)
    assert "64" in compiled.source or "1, 1, 1" in compiled.source
    compiled(from_dlpack(x), from_dlpack(y), 3.0)
    assert np.array_equal(y, x * 3)
    a, b = arrays(65)
    with pytest.raises(ArgumentError, match=r"argument 'x': expected .*\(64\):\(1\).*, got .*\(65\):\(1\)"):
        compiled(from_dlpack(a), from_dlpack(b), 3.0)


def test_alignment_and_divisibility_are_checked():
    memory = np.zeros(129, np.float32)
    at = next(i for i in range(4) if (memory.ctypes.data + 4 * i) % 16 == 0)
    x = memory[at : at + 64]
    compiled = cute.compile(scale, from_dlpack(x, assumed_align=16), from_dlpack(x, assumed_align=16), 1.0)
    off = memory[at + 1 : at + 65]
    with pytest.raises(ArgumentError, match="argument .x.: expected an address that is a multiple of 16 bytes"):
        compiled(from_dlpack(off), from_dlpack(off), 1.0)
    even = from_dlpack(x).mark_compact_shape_dynamic(0, divisibility=16)
    compiled = cute.compile(scale, even, even, 1.0)
    odd = from_dlpack(memory[:60]).mark_compact_shape_dynamic(0, divisibility=4)
    with pytest.raises(ArgumentError, match="argument 'x': expected .*div=16"):
        compiled(odd, odd, 1.0)


def test_integers_out_of_range():
    @cute.jit
    def double(n: cutlass.Int32, m: cutlass.Uint8):
        return n * 2, m

    compiled = cute.compile(double, 1, 2)
    assert compiled(7, 200) == (14, 200)
    with pytest.raises(ArgumentError, match="argument 'n': expected Int32"):
        compiled(1 << 31, 2)
    with pytest.raises(ArgumentError, match="argument 'm': expected Uint8 .0 to 255."):
        compiled(1, -1)


def test_results_of_host_functions():
    @cute.jit
    def numbers(n, x, flag, name: cutlass.Constexpr):
        total = 0
        for i in range(n):
            total += i
        if flag:
            total = -total
        return total, {"half": x / 2, "name": name}, (n > 3, 5)

    assert numbers(5, 3.0, True, "a") == (-10, {"half": 1.5, "name": "a"}, (True, 5))
    assert cute.compile(numbers, 1, 1.0, False, "b")(2, 5.0, False) == (1, {"half": 2.5, "name": "b"}, (False, 5))


def test_host_arithmetic_is_that_of_the_machine():
    @cute.jit
    def arithmetic(a: cutlass.Int32, b: cutlass.Int32, x: cutlass.Float32):
        return (
            a // b, a % b, a + b, a * b, a << 3, a >> 1, a & b, a | b, a ^ b, -a, ~a, abs(a), min(a, b), max(a, b),
            cutlass.Int8(a), cutlass.Uint8(a), cutlass.Int64(a) * b, x * x, x / 3, cutlass.Int32(x), cutlass.Float16(x),
            cute.math.sqrt(x), a if x > 1.0 else b,
        )  # fmt: skip

    compiled = cute.compile(arithmetic, 1, 1, 1.0)
    f32 = np.float32

    def wrap(v: int, to: type = np.int32) -> int:
        return int(np.array(v & ((1 << 64) - 1), np.uint64).astype(to))

    for a, b, x in ((7, 3, 2.5), (-7, 3, 0.1), (2_000_000_011, -5, 1e-3), (-200, 7, 9.0)):
        expected = (
            a // b, a % b, wrap(a + b), wrap(a * b), wrap(a << 3), a >> 1, a & b, a | b, a ^ b, -a, ~a, abs(a), min(a,
            b), max(a, b), wrap(a, np.int8), wrap(a, np.uint8), a * b, float(f32(x) * f32(x)), float(f32(x) / f32(3)),
            int(f32(x)), float(np.float16(f32(x))), float(np.sqrt(f32(x))), a if f32(x) > 1 else b,
        )  # fmt: skip
        assert compiled(a, b, float(f32(x))) == expected


def test_control_flow_on_the_host_decides_launches():
    @cute.jit
    def some(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        for i in range(n):
            if i % 2 == 0:
                scale_kernel(x, y, 3.0, 4).launch(grid=1, block=THREADS)
            else:
                scale_kernel(y, x, 1.0, cute.size(x)).launch(grid=1, block=THREADS)

    x, y = arrays(8)
    some(x, y, 1)
    assert y.tolist() == [0, 3, 6, 9, 0, 0, 0, 0]
    compiled = cute.compile(some, x, y, 1)
    compiled(x, y, 2)
    assert x.tolist() == [0, 3, 6, 9, 0, 0, 0, 0]


def test_control_flow_and_assertions_of_the_host_are_python():
    """What the simulator would have to run keeps a program from launching by plain addresses."""

    @cute.jit
    def some(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        for i in range(n):
            if i > 0:
                cute.testing.assert_(n < 4, "n is large")
                scale_kernel(x, y, 3.0, n).launch(grid=1, block=THREADS)
        total = n
        for i in range(n):
            if i % 2 == 0:
                cute.testing.assert_(i < 4, "i is large")
                total += i
        return total

    x, y = arrays(8)
    compiled = cute.compile(some, x, y, 1)
    assert "segment" not in compiled.source
    assert compiled(x, y, 3) == 5
    assert y.tolist() == [0, 3, 6, 0, 0, 0, 0, 0]
    with pytest.raises(MachineError, match="n is large"):
        compiled(x, y, 4)


def test_empty_grids_are_not_launched():
    x, y = np.zeros(0, np.float32), np.zeros(0, np.float32)
    scale(x, y, 1.0)


def test_equal_specialisations_share_a_kernel():
    @cute.jit
    def three(x: cute.Tensor, y: cute.Tensor):
        for factor in [1.0, 2.0, 3.0]:
            scale_kernel(x, y, factor, 4).launch(grid=1, block=THREADS)
        scale_kernel(x, y, 4.0, 4).launch(grid=1, block=32)

    x, y = arrays(8)
    compiled = cute.compile(three, x, y)
    assert [(k.name, k.attrs["max_threads"]) for k in compiled.kernels] == [
        ("scale_kernel", 64),
        ("scale_kernel_1", 32),
    ]
    compiled(x, y)
    assert y[3] == 12


def test_kernels_are_clean_and_bear_the_users_names():
    x, y = arrays(8)
    text = str(cute.compile(scale, x, y, 1.0).kernels[0])
    assert (
        "kernel @scale_kernel(%x: ptr<f32, gmem, align 4>, %y: ptr<f32, gmem, align 4>, %factor: f32, %count: i32)"
        in text
    )
    assert "%tidx = sreg {name='tid.x'}" in text
    assert "ctaid.y" not in text  # it is not used


def test_locations_are_the_users_lines():
    import inspect

    x, y = arrays(8)
    kernel = cute.compile(scale, x, y, 1.0).kernels[0]
    lines, first = inspect.getsourcelines(scale_kernel.function)
    store = next(op for op in kernel.walk() if op.opcode == "store")
    assert store.loc.file == inspect.getsourcefile(scale_kernel.function)
    assert "y[i] = x[i] * factor" in lines[store.loc.line - first]


def test_machines_are_found_by_name():
    assert machine_of("cpu") is machine_of("cpu:0")
    with pytest.raises(MachineError, match="no machine runs kernels on 'mps' arrays"):
        machine_of("mps")


def test_a_call_is_a_handful_of_calls():
    x = torch.zeros(64, 64)
    y, z = torch.zeros(64, 64), torch.zeros(64, 64)

    @cute.kernel
    def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        c[tidx, 0] = a[tidx, 0] + b[tidx, 0]

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        add(a, b, c).launch(grid=(cute.ceil_div(a.shape[0], 64), a.shape[1], 1), block=64)

    compiled = cute.compile(host, x, y, z)
    compiled._loaded["cpu"] = [lambda config, args: None]  # the host's part alone

    compiled(x, y, z)
    assert calls_in(lambda: compiled(x, y, z)) < 50


def test_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = arrays(8)
    plain = cute.compile(scale, x, y, 1.0)
    assert "options" not in plain.kernels[0].attrs
    made = cute.compile[cute.OptLevel(2), cute.KeepPTX](scale, x, y, 1.0)
    assert made.options.opt_level == 2 and made.options.keep_ptx
    text = cute.compile(scale, x, y, 1.0, options="--opt-level 1 --ptxas-options '--verbose' --generate-line-info")
    assert (text.options.opt_level, text.options.ptxas_options, text.options.generate_line_info) == (
        1,
        "--verbose",
        True,
    )
    with pytest.raises(ArgumentError, match="unknown option '--opt-lvl'"):
        cute.compile(scale, x, y, 1.0, options="--opt-lvl 2")
    with pytest.raises(ArgumentError, match="opt-level is 0, 1, 2 or 3"):
        cute.OptLevel(7)
    with pytest.raises(ArgumentError, match="takes options such as KeepPTX"):
        cute.compile["--keep-ptx"]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("--opt-level 0", "opt_level", 0),
        ("--opt-level=3", "opt_level", 3),
        ("--opt-level= 1", "opt_level", 1),
        ("--opt-level 1 --opt-level=2", "opt_level", 2),
        ("--ptxas-options=-v", "ptxas_options", "-v"),
        ("--ptxas-options=3", "ptxas_options", "3"),
        ("--gpu-arch=sm_80", "gpu_arch", "sm_80"),
        ("--check=races", "check", "races"),
        *[(f"--keep-ptx{word}", "keep_ptx", True) for word in ("", "=1", "=True", "=yes", "=")],
        *[(f"--enable-assertions={word}", "enable_assertions", False) for word in ("0", "FALSE", "no")],
    ],
)
def test_each_form_of_an_option_as_text(text, field, value):
    assert getattr(options.parse(options.CompileOptions(), text), field) == value


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: options.parse(options.CompileOptions(), "--opt-level"), "--opt-level needs a value"),
        (lambda: options.parse(options.CompileOptions(), "--opt-level="), "--opt-level needs a value"),
        (lambda: options.parse(options.CompileOptions(), "--opt-level -1"), "0, 1, 2 or 3, not -1"),
        (lambda: options.parse(options.CompileOptions(), "--opt-level 2.0"), "0, 1, 2 or 3, not '2.0'"),
        (lambda: options.parse(options.CompileOptions(), "keep-ptx"), "unknown option 'keep-ptx'"),
        (lambda: options.parse(options.CompileOptions(), "--keep-ptx '"), "No closing quotation"),
        (lambda: options.parse(options.CompileOptions(), ["--keep-ptx"]), "text"),
        (lambda: cute.OptLevel(True), "0, 1, 2 or 3, not True"),
        (lambda: cute.OptLevel(-1), "0, 1, 2 or 3, not -1"),
        (lambda: cute.OptLevel(4), "0, 1, 2 or 3, not 4"),
        (lambda: cute.OptLevel(2.0), "opt-level takes a int, not 2.0"),
        (lambda: cute.KeepPTX(1), "keep-ptx takes a bool, not 1"),
        (lambda: cute.PtxasOptions(3), "ptxas-options takes a str, not 3"),
        (lambda: options.EnableTVMFFI(False), "cannot be switched off"),
        (lambda: cute.compile[int], "not <class 'int'>"),
        (lambda: cute.compile[cute.KeepPTX, 2], "such as KeepPTX or OptLevel.2., not 2"),
    ],
)
def test_option_values_that_are_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_option_values_that_are_accepted():
    kinds = (cute.OptLevel(0), cute.OptLevel(3), cute.GPUArch(""), cute.GPUArch("sm_80"), options.EnableTVMFFI(True))
    assert [kind.value for kind in kinds] == [0, 3, "", "sm_80", True]


@cute.jit
def lambda_like(x):
    return x


def test_compile_takes_jit_functions_with_all_arguments():
    with pytest.raises(ArgumentError, match="cannot be compiled alone"):
        cute.compile(scale_kernel, 1)
    with pytest.raises(ArgumentError, match="takes a @cute.jit function"):
        cute.compile(3)
    with pytest.raises(ArgumentError, match="missing a required argument"):
        cute.compile(scale)
    with pytest.raises(ArgumentError, match="returns HostTensor|returns Tensor|results that are tensors"):
        cute.compile(lambda_like, np.zeros(3))


def test_compile_errors_suggest_a_fix():
    class Plain:
        def __call__(self, x):
            return x

    hints = [
        (Plain(), "mark .*Plain.__call__ with @cute.jit"),
        (Plain, r"cute.compile\(Plain\(...\), ...\)"),
        (7, "got 7$"),
        ("text", "got 'text'$"),
        ([], r"got \[\]$"),
    ]
    for given, hint in hints:
        with pytest.raises(ArgumentError, match=hint):
            cute.compile(given, 1)
