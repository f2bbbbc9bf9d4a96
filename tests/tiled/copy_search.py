"""Tiled copies of drawn tensors, tiles, thread-value layouts and instructions, run in the simulator.

A case is a number. Each moves a matrix of different numbers from ``x`` to ``y`` by one instruction (through registers,
``cp.async``, ``ldmatrix``, ``stmatrix``), the rest of the way element by element: then ``y`` equals ``x``, and the
memory around ``y`` is as before. A copy that cannot be is refused while staging.

``python -m tests.tiled.copy_search --cases 2000 --jobs 2 --out counts.json`` runs many of them; ``--device cuda``
on the GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as cutlass
from tests.search_options import add_options, in_processes, leave
from tests.tiled.staging import asynchronous, run, shared, universal
from tilewright import cute
from tilewright.errors import SimulationError, TilewrightError

DTYPES = {"u8": cutlass.Uint8, "f16": cutlass.Float16, "f32": cutlass.Float32, "f64": cutlass.Float64}
GUARD = 64
"""Elements before and after the memory of a matrix."""

Body = Callable[..., None]


class Drawing:
    """The choices of one case; ``text`` says them."""

    def __init__(self, seed: int) -> None:
        self.rng, self.text = np.random.default_rng(seed), f"case {seed}:"
        self.bounds: Any = None
        self.outside = 0
        """What is in ``y`` outside of the bounds of a copy with predicates."""

    def choose(self, name: str, *values: Any) -> Any:
        found = values[int(self.rng.integers(len(values)))]
        self.text += f" {name} {found};"
        return found


def drawn_matrix(draw: Drawing, name: str, rows: int, columns: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """A matrix and all of the memory around it: row- or column-major, the outer stride padded or not, mostly aligned
    to 16 bytes."""
    by_rows = draw.choose(f"{name} is", "row-major", "column-major") == "row-major"
    inner, outer = (columns, rows) if by_rows else (rows, columns)
    step = inner + draw.choose("padded by", 0, 0, 8, 16, 1)
    item = np.dtype(dtype).itemsize
    first = GUARD + (draw.choose("starts at", 0, 0, 0, 4, 1) if name == "x" else 0)
    raw = np.zeros((first + outer * step + GUARD) * item + 16, np.uint8)
    start = -raw.ctypes.data % 16
    memory = raw[start : start + (first + outer * step + GUARD) * item].view(dtype)
    memory[:] = 1
    strides = (step * item, item) if by_rows else (item, step * item)
    return np.lib.stride_tricks.as_strided(memory[first:], (rows, columns), strides), memory


def drawn_shared(draw: Drawing, rows: int, columns: int) -> Any:
    """A layout of a tile in shared memory: row- or column-major, padded or swizzled or neither."""
    by_rows = draw.choose("shared is", "row-major", "column-major") == "row-major"
    inner = columns if by_rows else rows
    kind = draw.choose("and", "plain", "padded", "swizzled")
    step = inner + (draw.choose("by", 1, 4, 8, 16) if kind == "padded" else 0)
    layout = cute.make_layout((rows, columns), stride=(step, 1) if by_rows else (1, step))
    if kind != "swizzled":
        return layout
    bits, base = draw.choose("bits", 1, 2, 3), draw.choose("base", 2, 3, 4)
    return cute.make_composed_layout(cute.make_swizzle(bits, base, 3), 0, layout)


def drawn_copy(draw: Drawing, atom: Any) -> tuple[Any, int, tuple[int, int]]:
    """A tiled copy by a layout of threads and one of their values; its threads and its tile."""
    across = draw.choose("threads", (4, 8), (8, 4), (16, 4), (32, 1), (1, 32), (16, 8))
    each = draw.choose("values", (1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (4, 1), (8, 1), (2, 2), (1, 16))
    threads = cute.make_ordered_layout(across, order=draw.choose("order", (0, 1), (1, 0)))
    values = cute.make_ordered_layout(each, order=draw.choose("order", (0, 1), (1, 0)))
    tile = across[0] * each[0], across[1] * each[1]
    return cute.make_tiled_copy_tv(atom, threads, values), across[0] * across[1], tile


def element_by_element(tidx: Any, threads: int, source: Any, target: Any) -> None:
    """Thread ``t`` moves the elements ``t, t + threads, ...`` of a tile, counted row by row."""
    rows, columns = source.shape
    for i in cutlass.range_constexpr((rows * columns + threads - 1) // threads):
        at = i * threads + tidx
        if at < rows * columns:
            target[at // columns, at % columns] = source[at // columns, at % columns]


# -- the instructions --------------------------------------------------------------------------------------------------


def through_registers(draw: Drawing) -> tuple[Body, int, tuple[int, int], str]:
    """Vector loads into a fragment, and stores as wide as the destination allows."""
    kind = draw.choose("elements", *DTYPES)
    width = DTYPES[kind].width
    bits = draw.choose("bits", *(b for b in (8, 16, 32, 64, 128) if b >= width))
    copy, threads, tile = drawn_copy(draw, universal(bits, DTYPES[kind]))
    rest = draw.choose("tiles", (1, 1), (2, 1), (1, 3))

    def body(tidx: Any, x: Any, y: Any) -> None:
        thread = copy.get_slice(tidx)
        source = thread.partition_S(x)  # (value, tiles of m, tiles of n)
        fragment = cute.make_fragment_like(source)
        cute.copy(copy, source, fragment)
        cute.autovec_copy(fragment, thread.partition_D(y))

    return body, threads, (tile[0] * rest[0], tile[1] * rest[1]), kind


def by_cp_async(draw: Drawing) -> tuple[Body, int, tuple[int, int], str]:
    kind = draw.choose("elements", "f16", "f32", "u8")
    copy, threads, tile = drawn_copy(draw, asynchronous(draw.choose("bits", 32, 64, 128), DTYPES[kind]))
    layout = drawn_shared(draw, *tile)

    def body(tidx: Any, x: Any, y: Any) -> None:
        thread, memory = copy.get_slice(tidx), shared(layout, DTYPES[kind])
        cute.copy(copy, thread.partition_S(x), thread.partition_D(memory))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        element_by_element(tidx, threads, memory, y)

    return body, threads, tile, kind


def drawn_bounds(draw: Drawing, each: tuple[int, int], tile: tuple[int, int]) -> None:
    """Rows and columns that are copied: whole vectors; all of one of them, often."""
    drawn = [int(draw.rng.integers(0, whole // own + 1)) * own for own, whole in zip(each, tile, strict=True)]
    whole = draw.choose("bounded are", "both", "rows", "columns")
    draw.bounds = (tile[0] if whole == "columns" else drawn[0], tile[1] if whole == "rows" else drawn[1])
    draw.text += f" bounds {draw.bounds};"


def predicates(draw: Drawing, thread: Any, values: int, tile: tuple[int, int], apart: bool) -> Any:
    """One for each instruction of a thread in each tile, which moves ``values``; those along a mode that no bound
    crosses are one, unless they are ``apart``."""
    places = thread.partition_S(cute.make_identity_tensor(tile))  # (value, tiles of m, tiles of n)
    v, m, n = (int(cute.size(places, mode=[mode])) for mode in range(3))
    v //= values
    strides = (1, v if apart or draw.bounds[0] < tile[0] else 0, v * m if apart or draw.bounds[1] < tile[1] else 0)
    found = cute.make_rmem_tensor(cute.make_layout((v, m, n), stride=strides), cutlass.Boolean)
    for k in cutlass.range_constexpr(v):
        for i in cutlass.range_constexpr(m):
            for j in cutlass.range_constexpr(n):
                found[k, i, j] = cute.elem_less(places[k * values, i, j], draw.bounds)
    return found


def with_predicates(draw: Drawing) -> tuple[Body, int, tuple[int, int], str]:
    """Vectors within bounds into a fragment, or by ``cp.async``, which fills the others with zeros."""
    kind = draw.choose("elements", "f16", "f32", "f32", "u8")
    memory_too = draw.choose("by", "registers", "cp.async") == "cp.async"
    bits = draw.choose("bits", 32, 32, 64, 128) if memory_too else DTYPES[kind].width * draw.choose("values", 1, 2, 4)
    copy, threads, one = drawn_copy(draw, (asynchronous if memory_too else universal)(bits, DTYPES[kind]))
    rest = draw.choose("tiles", (1, 1), (2, 1), (1, 3), (2, 2))
    tile = one[0] * rest[0], one[1] * rest[1]
    values = bits // DTYPES[kind].width
    drawn_bounds(draw, (min(values, one[0]), min(values, one[1])), tile)
    layout, apart = drawn_shared(draw, *tile), draw.choose("predicates apart", False, True)

    def by_registers(tidx: Any, x: Any, y: Any) -> None:
        thread = copy.get_slice(tidx)
        source = thread.partition_S(x)  # (value, tiles of m, tiles of n)
        fragment = cute.make_fragment_like(source)
        fragment.fill(1)
        cute.copy(copy, source, fragment, pred=predicates(draw, thread, values, tile, apart))
        cute.autovec_copy(fragment, thread.partition_D(y))

    def by_memory(tidx: Any, x: Any, y: Any) -> None:
        thread, memory = copy.get_slice(tidx), shared(layout, DTYPES[kind])
        chosen = predicates(draw, thread, values, tile, apart)
        cute.copy(copy, thread.partition_S(x), thread.partition_D(memory), pred=chosen)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        element_by_element(tidx, threads, memory, y)

    draw.outside = 0 if memory_too else 1
    return by_memory if memory_too else by_registers, threads, tile, kind


def drawn_mma(draw: Drawing) -> tuple[Any, int]:
    warps = draw.choose("warps", (1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1))
    m, n, k = 16 * warps[0], 16 * warps[1], 16
    permutation = draw.choose("permutation", (m, n, k), (2 * m, n, k), (m, n, 2 * k))
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout(warps), permutation_mnk=permutation)
    return mma, 32 * warps[0] * warps[1]


def matrix_atom(draw: Drawing, op: Any) -> Any:
    transpose, count = draw.choose("transpose", False, True), draw.choose("matrices", 1, 2, 4)
    return cute.make_copy_atom(op(transpose=transpose, num_matrices=count), cutlass.Float16)


def by_ldmatrix(draw: Drawing) -> tuple[Body, int, tuple[int, int], str]:
    """A tile in shared memory into the registers of an operand of mma.sync, through ``retile``."""
    (mma, threads), tile = drawn_mma(draw), draw.choose("tile", (64, 32), (64, 64), (32, 64))
    side = draw.choose("operand", "A", "B")
    layout, atom = drawn_shared(draw, *tile), matrix_atom(draw, cute.nvgpu.warp.LdMatrix8x8x16bOp)

    def body(tidx: Any, x: Any, y: Any) -> None:
        memory = shared(layout)
        element_by_element(tidx, threads, x, memory)
        cute.arch.sync_threads()
        copy = (cute.make_tiled_copy_A if side == "A" else cute.make_tiled_copy_B)(atom, mma)
        thread, owner = copy.get_slice(tidx), mma.get_slice(tidx)
        partition = owner.partition_A if side == "A" else owner.partition_B
        make = mma.make_fragment_A if side == "A" else mma.make_fragment_B
        registers = make(partition(memory))  # (MMA, MMA_M or MMA_N, MMA_K)
        cute.copy(copy, thread.partition_S(memory), thread.retile(registers))
        places = partition(cute.make_identity_tensor(tile))
        for i in cutlass.range_constexpr(cute.size(registers)):
            y[places[i]] = registers[i]

    return body, threads, tile, "f16"


def by_stmatrix(draw: Drawing) -> tuple[Body, int, tuple[int, int], str]:
    """Accumulators of mma.sync as 16-bit values into a tile in shared memory, through ``retile``."""
    (mma, threads), tile = drawn_mma(draw), draw.choose("tile", (64, 32), (64, 64), (32, 64))
    layout, atom = drawn_shared(draw, *tile), matrix_atom(draw, cute.nvgpu.warp.StMatrix8x8x16bOp)

    def body(tidx: Any, x: Any, y: Any) -> None:
        memory = shared(layout)
        copy = cute.make_tiled_copy_C(atom, mma)
        thread, places = copy.get_slice(tidx), mma.get_slice(tidx).partition_C(cute.make_identity_tensor(tile))
        registers = cute.make_rmem_tensor(mma.partition_shape_C(tile), cutlass.Float16)
        for i in cutlass.range_constexpr(cute.size(registers)):
            registers[i] = x[places[i]]
        cute.copy(copy, thread.retile(registers), thread.partition_D(memory))
        cute.arch.sync_threads()
        element_by_element(tidx, threads, memory, y)

    return body, threads, tile, "f16"


INSTRUCTIONS = {
    "registers": through_registers,
    "cp.async": by_cp_async,
    "predicates": with_predicates,
    "ldmatrix": by_ldmatrix,
    "stmatrix": by_stmatrix,
}


# -- running cases -----------------------------------------------------------------------------------------------------


def check(seed: int, instruction: str, device: str = "cpu") -> str:
    """``right`` or ``refused``; AssertionError where an element is wrong or memory outside of ``y`` has changed."""
    draw = Drawing(seed)
    try:
        body, threads, shape, kind = INSTRUCTIONS[instruction](draw)
    except TilewrightError:
        return "refused"
    dtype = np.dtype(DTYPES[kind].dtype)
    x, _ = drawn_matrix(draw, "x", *shape, dtype)
    y, memory = drawn_matrix(draw, "y", *shape, dtype)
    x[...] = (np.arange(x.size).reshape(shape) % 251 + 2).astype(dtype)
    expected = memory.copy()
    offset = (y.ctypes.data - memory.ctypes.data) // memory.itemsize
    strides = y.strides
    wanted = np.lib.stride_tricks.as_strided(expected[offset:], shape, strides)
    wanted[...] = x if draw.bounds is None else draw.outside
    if draw.bounds is not None:
        wanted[: draw.bounds[0], : draw.bounds[1]] = x[: draw.bounds[0], : draw.bounds[1]]
    try:
        run(body, x, y, threads=threads, aligned=False, device=device)
    except SimulationError as error:
        raise AssertionError(f"{draw.text} {error}") from error
    except TilewrightError:
        return "refused"
    np.testing.assert_array_equal(memory, expected, draw.text)
    return "right"


def examine(number: int, device: str = "cpu") -> tuple[str, str, str]:
    """Instruction, verdict and message of case ``number``: the instructions follow each other."""
    instruction = list(INSTRUCTIONS)[number % len(INSTRUCTIONS)]
    try:
        return instruction, check(number, instruction, device), ""
    except Exception as error:
        verdict = "wrong" if isinstance(error, AssertionError) else "error"
        return instruction, verdict, f"{number} {type(error).__name__} {' '.join(str(error).split())[:600]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, devices=True)
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    begin, failed = time.time(), []
    by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, (instruction, verdict, text) in in_processes(options, partial(examine, device=options.device)):
        by[instruction][verdict] += 1
        if text:
            failed.append(text)
            print(text, flush=True)
    command = (
        f"python -m tests.tiled.copy_search --cases {options.cases} --first {options.first} --device {options.device}"
    )
    total = sum(by.values(), Counter[str]())
    found = {
        "command": command,
        "cases": total.total(),
        **total,
        "by": {name: dict(by[name]) for name in sorted(by)},
        "failed": failed,
        "seconds": round(time.time() - begin),
    }
    print(json.dumps({name: value for name, value in found.items() if name != "failed"}))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
    leave(0)
