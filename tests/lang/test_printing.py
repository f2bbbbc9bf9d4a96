"""printf and print_tensor: at once on the host, by threads in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError


def test_on_the_host(capsys) -> None:
    cute.printf("{} is {:.2f}, {{}}", 3, 2.5)
    cute.printf("%d%% of %5.1f\n", cutlass.Int32(7), 1.25)
    cute.printf(cute.make_layout((4, 8)), (1, 2))
    assert capsys.readouterr().out == "3 is 2.50, {}\n7% of   1.2\n(4,8):(1,4) (1,2)\n"


def test_formats_are_checked() -> None:
    with pytest.raises(ArgumentError, match="more fields"):
        cute.printf("{} {}", 1)
    with pytest.raises(ArgumentError, match="no field"):
        cute.printf("{}", 1, 2)
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


def test_in_a_kernel(capsys) -> None:
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
    assert capsys.readouterr().out.splitlines() == [
        "t=1 of (9,4):(4,1) n=%d",
        "9 5.0",
        "tensor(raw_ptr(f32, gmem) o (2,3):(3,1), data=",
        "       [[0.000000, 1.000000, 2.000000],",
        "        [3.000000, 4.000000, 5.000000]])",
        "tensor(raw_ptr(i32, rmem) o (2,2):(1,2), data=",
        "       [[7(0x00), 7(0x08)],",
        "        [7(0x04), 7(0x0C)]])",
        "[7, 7, 7, 7]",
    ]


def test_in_host_code(capsys) -> None:
    @cute.jit
    def host(a: cute.Tensor, n: cutlass.Int32):
        print(a.layout)
        cute.printf("n + 1 = {}", n + 1)
        cute.print_tensor(a)

    host(from_dlpack(np.ones((2, 2), np.int32)), 4)
    assert capsys.readouterr().out.splitlines() == [
        "(2,2):(2,1)",
        "n + 1 = 5",
        "tensor(raw_ptr(i32, gmem) o (2,2):(2,1), data=",
        "       [[1, 1],",
        "        [1, 1]])",
    ]


def test_numerics_as_text() -> None:
    assert str(cutlass.Int32(3)) == "3" and repr(cutlass.Float16(2)) == "Float16(2.0)"
