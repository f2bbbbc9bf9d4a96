"""What the simulator's checks cost: each program unchecked, under the default checks and under all of them, in turns.

python bench/sim.py --checks [program ...] [--write]

Process time, the least of several rounds of one process, so that the three see the same machine: the ratios matter.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from elementwise_add import add

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm

CHECKS = ("none", "default", "all")
LEAST, MOST = 5, 40  # rounds
ENOUGH = 6.0  # seconds of a program's rounds; at least LEAST


def _normal(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _product(kernel: str, n: int, dtype: Any = np.float16, k_major: bool = False, **more: Any) -> Callable[[], Any]:
    a, b = _normal(n, n, dtype=dtype), _normal(n, n, dtype=dtype)
    if k_major:
        b = np.asfortranarray(b)
    return lambda: gemm(a, b, kernel=kernel, machine="cpu", **more)


def _stream_k() -> Callable[[], Any]:
    """Nine tiles for eight blocks: shares of a tile meet in the workspace."""
    return _product("tensorop_f16", 384, decomposition="stream_k")


def _sm100() -> Callable[[], Any]:
    run = _product("blackwell_f16", 512, k_major=True)

    def on_sm100() -> Any:
        with sim.options(arch="sm_100a"):
            return run()

    return on_sm100


def _add() -> Callable[[], Any]:
    a, b, c = _normal(1024, 1024), _normal(1024, 1024), np.zeros((1024, 1024), np.float32)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    executor = cute.compile(add, *tensors)
    return lambda: executor(*tensors)


def _attention() -> Callable[[], Any]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from attention import attention

    del sys.path[0]
    q, k, v = (_normal(4, 256, 64, dtype=np.float16) for _ in range(3))
    out = np.empty_like(q)
    return lambda: attention(q, k, v, out)


PROGRAMS: dict[str, Callable[[], Callable[[], Any]]] = {
    "tensorop_f16 1024^3": lambda: _product("tensorop_f16", 1024),
    "tensorop_f16 512^3": lambda: _product("tensorop_f16", 512),
    "hopper_f16 512^3": lambda: _product("hopper_f16", 512, k_major=True),
    "blackwell_f16 512^3": _sm100,
    "simt_f32 256^3": lambda: _product("simt_f32", 256, np.float32),
    "elementwise add 1024 x 1024": _add,
    "attention 4 x 256 x 64": _attention,
    "tensorop_f16 384^3 stream_k": _stream_k,
}


def cost(program: str) -> dict[str, Any]:
    """Seconds of one program under each of ``CHECKS``, and their ratios to the first."""
    run = PROGRAMS[program]()
    best = dict.fromkeys(CHECKS, float("inf"))
    spent, rounds = 0.0, -1  # the first round warms up
    while rounds < LEAST or (spent < ENOUGH and rounds < MOST):
        for check in CHECKS:
            with sim.options(check=check):
                start = time.process_time()
                run()
                seconds = time.process_time() - start
            if rounds >= 0:
                best[check] = min(best[check], seconds)
                spent += seconds
        rounds += 1
    ratios = {f"{check}_ratio": best[check] / best["none"] for check in CHECKS[1:]}
    return {"what": program, **best, **ratios, "rounds": rounds}


def costs(words: list[str]) -> list[dict[str, Any]]:
    """The programs whose names hold one of ``words``; all, if there are none."""
    return [cost(name) for name in PROGRAMS if not words or any(word in name for word in words)]
