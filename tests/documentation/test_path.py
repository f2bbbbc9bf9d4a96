"""docs/path: each step is a complete program that prints what the page says; its kernels compile without spills."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute
from tests.page_programs import run_program
from tilewright import cuda
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tools.website import path

FOLDER = path.STEPS[0].parent
STEPS = [step.stem for step in path.STEPS]
KERNELS = {"08_cp_async_pipeline": "sm_80", "12_stream_k": "sm_90a", "14_pairs_of_blocks": "sm_100a"}
"""Steps that have in them what those before have, and the GPU that they are for."""


def program(step: str) -> str:
    return path.program(FOLDER / f"{step}.md")


def run(step: str, text: str, folder: Path, **more: Any) -> tuple[list[str], dict[str, Any]]:
    """What the program prints, and its names, to which ``more`` are added before."""
    printed, names = run_program(text, folder, step, **more)
    return printed.splitlines(), names


@pytest.mark.parametrize("step", STEPS)
def test_the_step_prints_what_the_page_says(step: str) -> None:
    text = program(step)
    printed, folder = path.executed(FOLDER / f"{step}.md")
    expected = re.findall(r"^ *print\(.*\) +# (.*)$", text, re.MULTILINE)
    if step in ("04_shared_memory", "06_shared_operands"):  # a loop prints; the lines stand in the text
        listed = re.search(r"It prints\n\n((?:    .*\n)+)", (FOLDER / f"{step}.md").read_text(encoding="utf-8"))
        assert listed
        expected = [line.strip() for line in listed[1].splitlines()]
    assert printed == expected and expected
    drawn = re.findall(r'\.save\("(\w+\.svg)"\)', text)
    assert [name for name in drawn if not (folder / name).exists()] == []


class OnDevice:
    """`from_dlpack` of a program that runs on a GPU: arrays are copied there, and back after each call."""

    def __init__(self, copied: Callable[[np.ndarray], Any], back: Callable[[Any], np.ndarray]) -> None:
        self.copied, self.back, self.pairs = copied, back, list[tuple[np.ndarray, Any]]()

    def from_dlpack(self, array: np.ndarray, **options: Any) -> Any:
        self.pairs.append((array, self.copied(array)))
        return from_dlpack(self.pairs[-1][1], **options)

    def fetch(self) -> None:
        for array, copy in self.pairs:
            array[...] = self.back(copy)
        self.pairs.clear()


def on_device(text: str) -> str:
    """The program with a fetch after each call, without what only the simulator has (times, pictures, counts)."""
    text = re.sub(r"^from tilewright.cute.runtime import from_dlpack\n", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)(add|transpose|scale|row_sums|gemm)(\(.*\))$", r"\1\2\3; fetch()", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)with sim\.(?:trace|profile)\(\) as \w+:", r"\1if True:", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(viz\.timeline|cycles\[|print\(cycles).*\n", "", text, flags=re.MULTILINE)
    return text.replace(", report.bank_conflicts)", ")")


def run_on_device(step: str, folder: Path, device: OnDevice) -> list[str]:
    text = on_device(program(step))
    assert "; fetch()" in text
    return run(step, text, folder, from_dlpack=device.from_dlpack, fetch=device.fetch)[0]


# Step 1's last program is wrong on purpose; 13 and 14 are for GPUs that have not been at hand.
ON_DEVICE = [step for step in STEPS if "01" < step[:2] < "13"]


@pytest.mark.gpu
@pytest.mark.parametrize("step", ON_DEVICE)
def test_the_step_runs_on_a_gpu(step: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if step[:2] >= "09" and torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("TMA and wgmma need Hopper")

    def copied(array: np.ndarray) -> Any:
        strides = tuple(stride // array.itemsize for stride in array.strides)
        copy = torch.empty_strided(array.shape, strides, dtype=torch.from_numpy(array[:0]).dtype, device="cuda")
        return copy.copy_(torch.from_numpy(array))

    printed = run_on_device(step, tmp_path, OnDevice(copied, lambda copy: copy.cpu().numpy()))
    assert "False" not in " ".join(printed)  # the last step asserts, the others print


@pytest.mark.parametrize("step", ["04_shared_memory", "09_tma_copy"])
def test_run_on_device_compares_device_results(step: str, tmp_path: Path) -> None:
    printed = run_on_device(step, tmp_path, OnDevice(lambda array: array.copy(order="K"), lambda copy: copy))
    assert "True" in " ".join(printed) and "False" not in " ".join(printed)
    wrong = OnDevice(lambda array: array.copy(order="K"), lambda copy: (np.arange(copy.size) % 7).reshape(copy.shape))
    assert "False" in " ".join(run_on_device(step, tmp_path, wrong))


def test_the_pages_of_the_site_show_the_pictures_and_the_programs(tmp_path: Path) -> None:
    for step in path.STEPS:
        (tmp_path / step.name).write_text(step.read_text(encoding="utf-8"))
    path.write(tmp_path)
    pages = "".join((tmp_path / f"{step}.md").read_text(encoding="utf-8") for step in STEPS)
    shown = re.findall(r"\]\((\w+-?\w*\.svg)\)", pages)
    assert len(shown) == len(set(shown)) == len(list(tmp_path.glob("*.svg"))) >= 6
    assert all((tmp_path / name).exists() for name in [*shown, *(f"{step}.py" for step in STEPS)])


def test_the_pages_are_listed_and_lead_on() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert len(STEPS) == 14 and re.findall(r"\]\((\d\d_\w+)\.md\)", index) == STEPS
    for step, following in zip(STEPS, STEPS[1:], strict=False):
        assert f"({following}.md)" in (FOLDER / f"{step}.md").read_text(encoding="utf-8")


READ = "cute.arch.sync_threads()                        # all threads have read them"


@pytest.mark.parametrize(
    ("step", "left_out", "rule"),
    [
        ("04_shared_memory", "cute.arch.sync_threads() ", "data-race"),
        ("06_shared_operands", READ, "data-race"),
        ("07_mma_gemm", READ, "data-race"),
        ("08_cp_async_pipeline", "cute.arch.cp_async_wait_group(STAGES - 2) ", "data-race"),
        ("10_wgmma", "warpgroup.wait_group(0) ", "wgmma-registers"),
        ("13_tcgen05", "cute.arch.mbarrier_wait(done, k % 2) ", "data-race"),
        ("14_pairs_of_blocks", "storing.arrive_and_wait() ", "tensor-memory-race"),
    ],
)
def test_findings_promised_by_pages_are_reported(step: str, left_out: str, rule: str, tmp_path: Path) -> None:
    text = program(step)
    assert text.count(left_out) == 1
    with pytest.raises(SimulationError) as caught:
        run(step, text.replace(left_out, "pass  # " if "#" not in left_out else "pass # "), tmp_path)
    assert rule in str(caught.value)


@pytest.mark.parametrize("step", KERNELS)
def test_the_kernels_compile_without_spills(step: str, tmp_path: Path) -> None:
    _, names = run(step, program(step).split("\nrng = ")[0], tmp_path)
    tensor = names["from_dlpack"]
    a, b = (tensor(np.zeros((rows, 256), np.float16), assumed_align=16) for rows in (256, 128))
    c = tensor(np.zeros((256, 128), np.float32), assumed_align=16)
    more: list[Any] = [2] if step == "14_pairs_of_blocks" else []
    if step == "12_stream_k":
        parts = np.zeros((4, 128, 64), np.float32).transpose(2, 1, 0)
        more = [tensor(parts, assumed_align=16), tensor(np.zeros(4, np.int32)), 1]
    (kernel,) = cute.compile(names["gemm"], a, b, c, *more).kernels
    artifact = cuda.compile(kernel, KERNELS[step])
    assert artifact.spills == 0 and artifact.warnings == []
