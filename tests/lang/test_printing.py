"""printf and print_tensor: at once on the host, by threads in kernels."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError
from tilewright.testing import per_thread


def lines(capsys) -> list[str]:
    """What was printed, without the digits of addresses."""
    return re.sub(r"0x[0-9a-f]{16}:", "0x...:", capsys.readouterr().out).splitlines()


def test_printf_on_the_host(capsys) -> None:
    cute.printf("{} is {:.2f}, {{}}", 3, 2.5)
    cute.printf("%d%% of %5.1f\n", cutlass.Int32(7), 1.25)
    cute.printf(cute.make_layout((4, 8)), (1, 2))
    assert capsys.readouterr().out == "3 is 2.50, {}\n7% of   1.2\n(4,8):(1,4) (1,2)\n"


def test_formats_are_checked() -> None:
    with pytest.raises(ArgumentError, match="more fields"):
        cute.printf("{} {}", 1)
    with pytest.raises(ArgumentError, match="no field"):
        cute.printf("{}", 1, 2)
    for text in ("{n} {}", "{", "n }", "{0x} {}"):
        with pytest.raises(ArgumentError, match="a brace of the text is written twice"):
            cute.printf(text, 1)
    with pytest.raises(ArgumentError, match="2 fields for 1 values"):
        cute.printf("%d %d", 1)


def test_seed_addresses(capsys) -> None:
    array = np.array([[1, 2, 3, 4, 0], [5, 6, 7, 8, 0], [9, 10, 11, 12, 0]], np.float32)[:, :-1]
    cute.print_tensor(from_dlpack(array), verbose=True)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "       [[1(0x00), 2(0x04), 3(0x08), 4(0x0C)],",
        "        [5(0x14), 6(0x18), 7(0x1C), 8(0x20)],",
        "        [9(0x28), 10(0x2C), 11(0x30), 12(0x34)]])",
    ]


def test_printf_in_a_kernel(capsys) -> None:
    @cute.kernel
    def kernel(a: cute.Tensor, n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        if t == 1:
            cute.printf("t={} of {} n=%d", t, cute.make_layout((n, 4), stride=(4, 1)))
            cute.printf("%d %.1f", n, a[1, 2])
            cute.print_tensor(a)
            fragment = cute.make_rmem_tensor((2, 2), cutlass.Int32)
            fragment.store(cute.full((2, 2), 7, cutlass.Int32))
            cute.print_tensor(fragment, verbose=True)
            cute.printf("{}", fragment.load())

    @cute.jit
    def host(a: cute.Tensor, n: cutlass.Int32):
        kernel(a, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    host(from_dlpack(np.arange(6, dtype=np.float32).reshape(2, 3)), 9)
    assert lines(capsys) == [
        "t=1 of (9,4):(4,1) n=%d",
        "9 5.0",
        "tensor(raw_ptr(0x...: f32, gmem, align<4>) o (2,3):(3,1), data=",
        "       [[0.000000, 1.000000, 2.000000],",
        "        [3.000000, 4.000000, 5.000000]])",
        "tensor(raw_ptr(i32, rmem) o (2,2):(1,2), data=",
        "       [[7(0x00), 7(0x08)],",
        "        [7(0x04), 7(0x0C)]])",
        "[7, 7, 7, 7]",
    ]


def test_floats_and_truth_print_as_c_prints_them(capsys) -> None:
    """The same text on the host, in a jit function and in a kernel."""

    @cute.kernel
    def kernel(x: cutlass.Float32, n: cutlass.Int32) -> None:
        cute.printf("kernel {} {} {}", x, n > 2, n < 2)
        values = cute.make_rmem_tensor(2, cutlass.Float16)
        values.fill(0.5)
        cute.printf("{}", values.load())
        cute.printf("{:.2f} {:d}", x, n)

    @cute.jit
    def host(x: cutlass.Float32, n: cutlass.Int32) -> None:
        cute.printf("jit {} {} {}", x, n > 2, True)
        kernel(x, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    cute.printf("python {} {}", cutlass.Float32(3.14), cutlass.Boolean(True))
    host(3.14, 3)
    assert capsys.readouterr().out.splitlines() == [
        "python 3.140000 1",
        "jit 3.140000 1 1",
        "kernel 3.140000 1 0",
        "[0.500000, 0.500000]",
        "3.14 3",
    ]


def test_numbers_of_the_program_are_unknown_to_python_print(capsys) -> None:
    @cute.jit
    def host(n: cutlass.Int32) -> None:
        a, b = cutlass.Int32(42), cutlass.Float32(3.14)
        print(a, b, n, cute.make_layout((n, 2)), f"{a:4d}")
        cute.printf("{} {} {}", a, b, n)

    host(5)
    assert capsys.readouterr().out.splitlines()[-1] == "42 3.140000 5"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        cute.compile(host, 5)
    assert printed.getvalue() == "? ? ? (?,2):(1,?) ?\n"
    assert str(cutlass.Int32(42)) == "42"


def test_numbers_of_the_program_in_layouts_are_unknown_to_python_print(capsys) -> None:
    """The outputs are those of the documentation's examples of coalesce and composition."""

    @cute.jit
    def host() -> None:
        n = cutlass.Int32
        for layout in (
            cute.make_layout((2, (1, 6)), stride=(1, (n(6), 2))),
            cute.composition(cute.make_layout((6, 2), stride=(n(8), 2)), cute.make_layout((4, 3), stride=(3, 1))),
            cute.composition(
                cute.make_layout((n(10), n(2)), stride=(n(16), n(4))),
                cute.make_layout((n(5), n(4)), stride=(n(1), n(5))),
            ),
            cute.make_layout((2, 3)),
        ):
            print(layout)
            cute.printf("{}", layout)

    host()
    assert capsys.readouterr().out.splitlines() == [
        "(2,(1,6)):(1,(?,2))",
        "((2,2),3):((?,2),?)",
        "((?,?),(?,?)):((?,?),(?,?))",
        "(2,3):(1,2)",
        "(2,(1,6)):(1,(6,2))",
        "((2,2),3):((24,2),8)",
        "((5,1),(2,2)):((16,4),(80,4))",
        "(2,3):(1,2)",
    ]


def test_a_tensor_among_the_values(capsys) -> None:
    @cute.jit
    def host(a: cute.Tensor) -> None:
        cute.printf("tensor: {}", a)

    host(from_dlpack(np.array([1, 2, 3], np.uint16)))  # types that are printed have no signs
    host(from_dlpack(np.zeros((4, 2), np.float32)).mark_layout_dynamic())
    assert lines(capsys) == [
        "tensor: raw_ptr(0x...: i16, generic, align<2>) o (3):(1) = ",
        "  ( 1, 2, 3 )",
        "tensor: raw_ptr(0x...: f32, generic, align<4>) o (4,2):(2,1)",
    ]


def test_the_gpus_text_takes_the_same_fields() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        cute.print_tensor(x)
        cute.printf("{} {}", x, x[0] > 1)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    (staged,) = cute.compile(host, from_dlpack(np.zeros(2, np.float16))).kernels
    text = cutlass.cuda.compile(staged, "sm_90a").cuda
    assert "raw_ptr(0x%016llx: f16, gmem, align<2>) o (%d):(%d)" in text and "%f, %f" in text


def test_three_modes_print_matrix_by_matrix(capsys) -> None:
    @cute.jit
    def host(a: cute.Tensor) -> None:
        cute.print_tensor(a)

    array = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    expected = [
        "tensor(raw_ptr(0x...: i32, generic, align<4>) o (2,3,2):(6,2,1), data=",
        "       [[[0, 2, 4],",
        "         [6, 8, 10]],",
        "        [[1, 3, 5],",
        "         [7, 9, 11]]])",
    ]
    host(from_dlpack(array))
    assert lines(capsys) == expected
    cute.print_tensor(from_dlpack(array))
    assert lines(capsys) == expected


def test_printf_in_host_code(capsys) -> None:
    @cute.jit
    def host(a: cute.Tensor, n: cutlass.Int32):
        print(a.layout)
        cute.printf("n + 1 = {}", n + 1)
        cute.print_tensor(a)

    host(from_dlpack(np.ones((2, 2), np.int32)), 4)
    assert lines(capsys) == [
        "(2,2):(2,1)",
        "n + 1 = 5",
        "tensor(raw_ptr(0x...: i32, generic, align<4>) o (2,2):(2,1), data=",
        "       [[1, 1],",
        "        [1, 1]])",
    ]


def test_numerics_as_text() -> None:
    assert str(cutlass.Int32(3)) == "3" and repr(cutlass.Float16(2)) == "Float16(2.0)"


def test_types_and_layouts_in_f_strings(capsys) -> None:
    @cute.jit
    def host(a: cute.Tensor, n: cutlass.Int32) -> None:
        print(f"{a.layout} {a.type} {n:4d} {n!r}|")
        cute.printf(f"{a.layout} {a.type} {n:4d}|")

    host(np.zeros((3, 4), np.float32), 5)
    assert capsys.readouterr().out.splitlines() == [
        '(?,?):(?,1) !cute.memref<f32, generic, align<4>, "(?,?):(?,1)"> ? ?|',
        '(3,4):(4,1) !cute.memref<f32, generic, align<4>, "(3,4):(4,1)">    5|',
    ]


def test_tuples_with_run_time_numbers_print_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32) -> None:
        print(x.shape, x.stride, [n], (n, 1), cute.make_layout((n, 4)), f"{x.shape}")

    host(from_dlpack(np.zeros((4, 8), np.float32)).mark_layout_dynamic(), 3)
    assert capsys.readouterr().out == "(?, ?) (?, 1) [?] (?, 1) (?,4):(1,?) (?, ?)\n"


QUESTION = "really? {}"


def of_an_f_string(n: cutlass.Int32) -> None:
    cute.printf(f"n = {n}")


def of_a_helper(n: cutlass.Int32) -> None:
    cute.printf("n = " + str(n))


def of_a_layout(n: cutlass.Int32) -> None:
    cute.printf(f"{cute.make_layout((n, 4))}")


@cute.jit
def of_another_text(n: cutlass.Int32) -> None:
    (lambda m: cute.printf(QUESTION.format(m)))(n)


def of_literals(n: cutlass.Int32) -> None:
    print(f"{n}")
    cute.printf("is it? {}", n)
    cute.printf(QUESTION, n)


@cute.jit
def of_a_lambda(n: cutlass.Int32) -> None:
    (lambda m: cute.printf(f"n = {m}, next {m + 1}"))(n)


@pytest.mark.parametrize("body", [of_an_f_string, of_a_helper, of_a_layout, of_another_text])
def test_a_text_that_has_lost_its_numbers_is_refused(body) -> None:
    with pytest.raises(StagingError, match=r"test_printing.py:\d+: printf\('.*\?.* stands for a number that is known"):
        per_thread(body, 1)


def test_texts_of_lambdas_and_question_marks_of_the_user_print(capsys) -> None:
    per_thread(of_a_lambda, 1)
    per_thread(of_literals, 1)
    assert capsys.readouterr().out == "n = 0, next 1\n?\nis it? 0\nreally? 0\n"


@cute.kernel
def _shapes(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    if cute.arch.thread_idx()[0] == 0:
        for x in (a, b, c):
            cute.print_tensor(x)
            cute.print_tensor(x, verbose=True)
        cute.printf("{} of {}: {}|{}", 1, b, b.shape, a[1, 2])


@cute.jit
def _print_shapes(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    cute.print_tensor(c)
    cute.printf("tensor: {}", b)
    _shapes(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_shapes_of_run_time_numbers_print_as_static_ones(capsys: pytest.CaptureFixture[str]) -> None:
    shapes = np.zeros((2, 3), np.float32), np.zeros(4, np.int32), np.zeros((2, 3, 4), np.int32)
    given = [from_dlpack(np.arange(x.size, dtype=x.dtype).reshape(x.shape)) for x in shapes]
    _print_shapes(*given)
    static = capsys.readouterr().out
    _print_shapes(*[x.mark_layout_dynamic() for x in given])
    assert capsys.readouterr().out == static
    assert "( 0, 1, 2, 3 ): (4)|5.000000" in static and "[12, 16, 20]]," in static


def test_text_without_an_end_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    per_thread(lambda t: (cute.printf("{} ", t, end=""), t)[1], 3)
    assert capsys.readouterr().out == "0 1 2 "


def test_fields_of_both_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    layout = cute.make_layout((4, 2))
    per_thread(lambda t: (cute.printf("a={}, b=%.2f, c=%3d, d={}", layout, Float32(t + 1), t, 7), t)[1], 1)
    cute.printf("a={}, b=%.1f%%", layout, 1.25)
    cute.printf("100% done: {}", 3)
    assert capsys.readouterr().out == "a=(4,2):(1,4), b=1.00, c=  0, d=7\na=(4,2):(1,4), b=1.2%\n100% done: 3\n"
