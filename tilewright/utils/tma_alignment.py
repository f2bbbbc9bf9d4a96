"""``check_gemm_tma_alignment``: whether TMA reads and stores the operands of a GEMM of these extents."""

from __future__ import annotations

from typing import Any

from tilewright.lang.tools.tuning import CantImplementError

UNIT = 16
"""Bytes of which the contiguous mode of a tensor of TMA is a multiple, as its other strides are."""


def check_gemm_tma_alignment(
    m: int,
    n: int,
    k: int,
    a_dtype: Any,
    b_dtype: Any,
    d_dtype: Any,
    a_major: str,
    b_major: str,
    d_major: str,
    *,
    output_tensor_name: str = "D",
) -> None:
    """CantImplementError where the contiguous mode of A (M, K), B (N, K) or the output (M, N) is not a multiple of 16
    bytes, which TMA needs of it. The majors are ``"m"``, ``"n"`` and ``"k"``. ``output_tensor_name`` is the output's
    name in the message.

    >>> from tilewright import Float16
    >>> check_gemm_tma_alignment(256, 64, 40, Float16, Float16, Float16, "k", "k", "n")
    """
    extents = {"m": m, "n": n, "k": k}
    for name, dtype, major, modes in (
        ("A", a_dtype, a_major, "mk"),
        ("B", b_dtype, b_major, "nk"),
        (output_tensor_name, d_dtype, d_major, "mn"),
    ):
        if dtype is None:
            continue
        if major not in modes:
            raise CantImplementError(f"{name} has the modes {modes[0]} and {modes[1]}; its major is {major!r}")
        if extents[major] * dtype.width % (8 * UNIT):
            raise CantImplementError(
                f"{name}: its contiguous mode {major} = {extents[major]} elements of {dtype} is no multiple of {UNIT} "
                f"bytes ({8 * UNIT // dtype.width} elements), which TMA needs"
            )
