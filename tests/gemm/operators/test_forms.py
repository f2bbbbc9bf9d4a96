"""The forms of the products that frameworks record, in a process that has loaded none."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import torch
from tilewright.gemm import combine_rows, matmul

x = torch.ones(4, 16).half()
places = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32)


def step(x, weights):
    return combine_rows(matmul(x, x.T), places, weights)


result = torch.compile(step, backend="aot_eager", fullgraph=True)(x, torch.ones(2, 2))
assert (result == 32).all(), result
"""


def test_the_first_call_may_be_compiled() -> None:
    """torch.compile follows no import by name, and guards what it has seen absent."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
