"""Drawn exchanges between the lanes of a warp: shuffles with masks and clamps, votes, matches, reductions; beside PTX's
definitions, written out in Python.

``python -m tests.lang.warp_search --cases 500 --jobs 2`` runs many kernels; ``--device cuda`` on the GPU.
"""

from __future__ import annotations

import functools
import operator
import random
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as cutlass
from tests.machines import on_gpu
from tests.search_options import leave, search
from tilewright import cute
from tilewright.cute import arch
from tilewright.errors import TilewrightError

LANES, EACH = 32, 6
FULL = (1 << LANES) - 1
DTYPES = {
    "Int8": np.int8,
    "Uint8": np.uint8,
    "Int16": np.int16,
    "Uint16": np.uint16,
    "Int32": np.int32,
    "Uint32": np.uint32,
    "Int64": np.int64,
    "Uint64": np.uint64,
    "Float16": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Float32": np.float32,
    "Float64": np.float64,
    "Boolean": np.bool_,
}
SHUFFLES = {
    "idx": arch.shuffle_sync,
    "up": arch.shuffle_sync_up,
    "down": arch.shuffle_sync_down,
    "bfly": arch.shuffle_sync_bfly,
}
REDUCTIONS = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
VOTES = {
    "any": arch.vote_any_sync,
    "all": arch.vote_all_sync,
    "uni": arch.vote_uni_sync,
    "ballot": arch.vote_ballot_sync,
}


def source_lane(kind: str, lane: int, b: int, c: int) -> int:
    """The lane that ``shfl.sync`` reads in ``lane``, after the PTX ISA."""
    clamp, segment, b = c & 31, c >> 8 & 31, b & 31
    most, least = lane & segment | clamp & ~segment, lane & segment
    found = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment & 31}[kind]
    return found if (found >= most if kind == "up" else found <= most) else lane


class Exchange:
    """One call: ``staged(value, lane, operands)`` in the kernel, ``expected(values, lane, operands)`` in Python."""

    def __init__(self, choose: random.Random) -> None:
        self.what = choose.choice(["shuffle", "shuffle", "shuffle", "vote", "match", "redux"])
        self.known = choose.random() < 0.5  # operands are known while staging
        self.partial = choose.random() < 0.3
        width = choose.choice([4, 8, 16])
        part = sum(((1 << width) - 1) << i * width for i in range(LANES // width) if choose.random() < 0.6)
        self.mask = (part or (1 << width) - 1) if self.partial else FULL
        self.dtype = choose.choice(list(DTYPES))
        if self.what == "shuffle":
            self.kind = choose.choice(list(SHUFFLES))
            segment = choose.choice([0, 0, 0, 32 - width, choose.randrange(32)]) if not self.partial else 32 - width
            clamp = (
                choose.choice([31, 31, 0, choose.randrange(32)])
                if not self.partial
                else (0 if self.kind == "up" else 31)
            )
            self.c: int | None = clamp | segment << 8
            if not self.partial and choose.random() < 0.4:
                self.c = None
            self.b = choose.choice([0, 1, 2, 3, 4, 8, 16, 17, 31, 32, 33, -1, 40])
            self.b = self.b % width if self.partial else self.b % 32 if self.known else self.b
            self.each = not self.partial and choose.random() < 0.3  # each lane has an operand of its own
        elif self.what == "vote":
            self.kind, self.dtype = choose.choice(list(VOTES)), "Boolean"
        elif self.what == "match":
            self.kind, self.dtype = choose.choice(["any", "all"]), choose.choice(["Int32", "Uint32", "Int64", "Uint64"])
        else:
            self.kind, self.dtype = choose.choice(list(REDUCTIONS)), choose.choice(["Int32", "Uint32"])
        self.result = self.dtype

    def __repr__(self) -> str:
        return str(vars(self))

    def staged(self, value: Any, lane: Any, zero: Any) -> Any:
        """``zero`` is a run-time 0, which makes operands unknown while staging."""
        unknown = 0 if self.known else zero
        mask = (
            self.mask if self.known else cutlass.Int32(self.mask - (1 << 32) if self.mask >> 31 else self.mask) + zero
        )
        if self.what == "shuffle":
            b = self.b + unknown + (lane % 4 if self.each else 0)
            c = None if self.c is None else self.c + unknown
            return SHUFFLES[self.kind](value, b, mask, c)
        if self.what == "vote":
            return VOTES[self.kind](value, mask)
        if self.what == "match":
            found = arch.match_sync(mask, value, kind=self.kind)
            return found[0] if isinstance(found, tuple) else found
        return arch.warp_redux_sync(value, self.kind, mask)

    def expected(self, values: list[Any], lane: int) -> Any:
        there = [i for i in range(LANES) if self.mask >> i & 1]
        if self.what == "shuffle":
            c = self.c if self.c is not None else 0 if self.kind == "up" else 31
            return values[source_lane(self.kind, lane, self.b + (lane % 4 if self.each else 0), c)]
        given = [values[i] for i in there]
        if self.what == "vote":
            bits = sum(1 << i for i in there if values[i])
            return {"any": any(given), "all": all(given), "uni": len({bool(x) for x in given}) == 1, "ballot": bits}[
                self.kind
            ]
        if self.what == "match":
            same = sum(1 << i for i in there if values[i] == values[lane])
            return same if self.kind == "any" or len({int(x) for x in given}) == 1 else 0
        return functools.reduce(REDUCTIONS[self.kind], map(int, given))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        dtype = np.dtype(DTYPES[self.dtype])
        if self.what == "match" or rng.random() < 0.2:
            return (np.zeros(LANES, int) + rng.integers(0, 2, LANES if rng.random() < 0.6 else 1)).astype(dtype)
        bits = rng.integers(0, 256, LANES * dtype.itemsize, dtype=np.uint8).view(f"u{dtype.itemsize}")
        return (bits & 1).astype(bool) if dtype.kind == "b" else bits.view(dtype)


def run(exchanges: list[Exchange], arrays: list[np.ndarray], device: str) -> np.ndarray:
    """The bits of the results, in 64 bits each."""

    @cute.kernel
    def kernel(given: tuple, out: cute.Tensor, zero: cutlass.Int32):
        lane, _, _ = cute.arch.thread_idx()
        for i in cutlass.range_constexpr(len(exchanges)):
            value = given[i][lane]
            out[lane, i] = cutlass.Uint64(0)
            if (cutlass.Uint32(exchanges[i].mask) >> cutlass.Uint32(lane)) & 1 == 1:
                found = cutlass.as_numeric(exchanges[i].staged(value, lane, zero))
                if cutlass.const_expr(type(found).is_float):
                    whole = {16: cutlass.Uint16, 32: cutlass.Uint32, 64: cutlass.Uint64}[type(found).width]
                    found = found.bitcast(whole)
                out[lane, i] = cutlass.Uint64(found)

    @cute.jit
    def host(given: tuple, out: cute.Tensor, zero: cutlass.Int32):
        kernel(given, out, zero).launch(grid=1, block=LANES)

    out = np.zeros((LANES, len(exchanges)), np.uint64)
    if device == "cpu":
        host(tuple(arrays), out, 0)
        return out
    there = on_gpu(out)
    host(tuple(map(on_gpu, arrays)), there, 0)
    return there.cpu().numpy()


def bits_of(value: Any) -> int:
    """As the kernel writes it."""
    if isinstance(value, (bool, int)):
        return int(value) % (1 << 64)
    if value.dtype.kind in "iu":
        return int(value) % (1 << 64)
    return int(value.view(f"u{value.dtype.itemsize}")) if value.dtype != bool else int(value)


def verdict(seed: int, device: str = "cpu") -> tuple[str, str]:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    exchanges = [Exchange(choose) for _ in range(EACH)]
    arrays = [one.draw(rng) for one in exchanges]
    try:
        out = run(exchanges, arrays, device)
    except TilewrightError as error:
        return "refused", f"{exchanges}\n{error}"
    except Exception as error:
        return "foreign", f"{exchanges}\n{type(error).__name__}: {error}"
    for i, one in enumerate(exchanges):
        for lane in range(LANES):
            if one.mask >> lane & 1:
                wanted = one.expected(list(arrays[i]), lane)
                signed = one.what == "redux" or (one.what in ("match", "vote") and one.kind == "ballot")
                found, exact = int(out[lane, i]), bits_of(wanted)
                if signed or one.what == "match":
                    found, exact = found % (1 << 32), exact % (1 << 32)
                if found != exact:
                    return "wrong", f"{one}\n{arrays[i].tolist()}\nlane {lane}: expected {exact:#x}, found {found:#x}"
    return "right", ""


if __name__ == "__main__":
    leave(search(__doc__, verdict))
