"""The exercise at the end of each step of docs/path: right answers pass its check, wrong ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.page_programs import run_program
from tools.website import path

FOLDER = path.STEPS[0].parent
QUESTION = "answer = ..."

SAXPY = """
@cute.kernel
def saxpy_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, factor: cutlass.Float32):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(c){slack}:
        c[i] = factor * a[i] + b[i]


@cute.jit
def saxpy(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, factor: cutlass.Float32):
    blocks = cute.ceil_div(cute.size(c), THREADS)
    saxpy_kernel(a, b, c, factor).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


answer = saxpy
"""

COPY = """
atom = cute.make_copy_atom(CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
answer = cute.make_tiled_copy_tv(atom, cute.make_layout(({threads}), stride=(1, {step})), cute.make_layout((4, 1)))
"""

SWIZZLED = "cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, cute.make_layout((T, T), stride={stride}))"

ANSWERS = {  # of each step: right ones, wrong ones
    "01_elementwise_add": ([SAXPY.format(slack="")], [SAXPY.format(slack=" - 1")]),
    "02_layouts": (
        ["Layout(((2, 4), (2, 8)), ((1, 32), (2, 4)))", "Layout(((2, 4), (2, 8)), ((2, 32), (1, 4)))"],
        ["Layout((8, 16), (16, 1))", "Layout(((2, 4), (2, 8)), ((1, 4), (2, 8)))"],
    ),
    "03_tiled_copy": ([COPY.format(threads="8, 16", step=8)], [COPY.format(threads="1, 64", step=1)]),
    "04_shared_memory": ([SWIZZLED.format(stride=(1, 32))], [SWIZZLED.format(stride=(32, 1)), "padded"]),
    "05_tiled_mma": (["(1, 8)"], ["(8, 1)", "(2, 4)"]),
    "06_shared_operands": (
        ["cute.make_swizzle(3, 3, 3)"],
        ["cute.make_swizzle(2, 3, 3)", "cute.make_swizzle(3, 2, 3)"],
    ),
    "07_mma_gemm": (["25"], ["9", "17"]),
    "08_cp_async_pipeline": (["(1, 0)"], ["(0, 0)", "(1, 1)", "(2, 0)"]),
    "09_tma_copy": (["(8448, 1)"], ["(8192, 1)", "(8448, 2)"]),
    "10_wgmma": (["69"], ["101", "68"]),
    "11_hopper_gemm": (["9"], ["8", "10"]),
    "12_stream_k": (["(3, 2)"], ["(4, 2)", "(3, 3)"]),
    "13_tcgen05": (["(73, 19)"], ["(41, 19)", "(73, 51)"]),
    "14_pairs_of_blocks": (["(20480, 24576)"], ["(24576, 24576)", "(20480, 40960)"]),
}


def answered(step: str, answer: str, names: dict[str, Any], folder: Path, number: int) -> str:
    """The last line that the exercise's block prints with ``answer`` in place of the three dots; ``names``: what
    the blocks before it have defined."""
    text = path.blocks(FOLDER / f"{step}.md")[-1]
    assert text.count(QUESTION) == 1
    code = answer if answer.startswith("\n") else f"answer = {answer}"
    printed, _ = run_program(text.replace(QUESTION, f"{code}  # ..."), folder, f"answer_{number}", **names)
    return printed.splitlines()[-1]


@pytest.mark.parametrize("step", ANSWERS)
def test_answers(step: str, tmp_path: Path) -> None:
    """The page's program runs once for all of them."""
    _, names = run_program("\n".join(path.blocks(FOLDER / f"{step}.md")[:-1]), tmp_path, step)
    for verdict, answers in zip(("right", "not yet"), ANSWERS[step], strict=True):
        (tmp_path / verdict).mkdir()
        for number, answer in enumerate(answers):
            assert answered(step, answer, names, tmp_path / verdict, number) == verdict, answer


def test_each_step_has_an_exercise_with_a_hint() -> None:
    assert list(ANSWERS) == [step.stem for step in path.STEPS]
    for step in path.STEPS:
        text = step.read_text(encoding="utf-8")
        assert text.index("## Exercise") < text.index(QUESTION) < text.index("<details><summary>Hint</summary>")
