"""The public face: every name resolves, nothing heavy is imported, the documented programs' names exist."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import cute
from tilewright.errors import TilewrightError

SURFACE = json.loads((Path(__file__).parents[1] / "data" / "api_surface.json").read_text())
FACES = [
    "tilewright",
    "tilewright.cute",
    "tilewright.cute.arch",
    "tilewright.cute.core",
    "tilewright.cute.math",
    "tilewright.cute.runtime",
    "tilewright.cute.testing",
    "tilewright.cute.typing",
    "tilewright.utils",
    "tilewright.testing",
    "tilewright.cutlass_dsl",
]
NOT_YET = {"pipeline", "sim", "torch"}  # packages of their own, or need PyTorch


@pytest.mark.parametrize("module", FACES)
def test_every_name_resolves(module) -> None:
    face = importlib.import_module(module)
    for name in face.__all__:
        if name not in NOT_YET:
            assert getattr(face, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    from tilewright import cute

    with pytest.raises(AttributeError, match="has no attribute 'make_layouts'"):
        _ = cute.make_layouts


@pytest.mark.parametrize("module", SURFACE)
def test_published_programs_find_their_names(module) -> None:
    found = importlib.import_module(module.replace("cutlass", "tilewright", 1))
    for name in SURFACE[module]:
        target = found
        for part in name.split("."):
            target = getattr(target, part)


def test_import_is_light() -> None:
    program = (
        "import sys, tilewright, tilewright.cute; "
        "print([m for m in ('torch', 'numpy', 'cuda', 'tilewright.sim', 'tilewright.cuda') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("cute", "nonsense", r"module 'tilewright.cute' has no attribute 'nonsense'$"),
        ("cute", "make_layouts", "has no attribute 'make_layouts'; did you mean 'make_layout'"),
        ("cute.arch", "thread_idxs", "did you mean 'thread_idx'"),
        ("cute.math", "cosh", "did you mean 'cos'"),
        ("cute.nvgpu.warp", "MmaF16BF16", "did you mean 'MmaF16BF16Op'"),
        ("experimental", "primitivs", "did you mean 'primitives'"),
        ("cute.nvgpu.tcgen05", "MmaF16BF16", "did you mean 'MmaF16BF16Op'"),
    ],
)
def test_an_unknown_name_says_which_is_near(module: str, name: str, words: str) -> None:
    found = importlib.import_module(f"tilewright.{module}".rstrip("."))
    with pytest.raises(AttributeError, match=words) as caught:
        getattr(found, name)
    assert isinstance(caught.value, TilewrightError)
    assert not hasattr(found, name)
    with pytest.raises(ImportError, match=words) as caught_import:
        exec(f"from {found.__name__} import {name}", {})
    assert isinstance(caught_import.value, TilewrightError)


def test_an_unknown_module_is_pythons_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'tilewright.cutee'"):
        importlib.import_module("tilewright.cutee")


def test_instructions_of_sm_100_can_be_named_and_not_used() -> None:
    from tilewright.cute.nvgpu import tcgen05

    assert tcgen05.CtaGroup.TWO.value == 2 and tcgen05.OperandMajorMode.K is cute.nvgpu.OperandMajorMode.K
    use, path = tcgen05.MmaF16BF16SparseOp, "cutlass.cute.nvgpu.tcgen05.MmaF16BF16SparseOp"
    assert isinstance(use, type) and isinstance(tcgen05.MmaMXF8Op, type)
    with pytest.raises(TilewrightError, match=rf"{path} is not here yet: the public documentation does not say"):
        use(1, dtype=2)


def test_a_missing_name_in_a_kernel_names_the_line() -> None:
    @cute.jit
    def program() -> None:
        cute.make_layuot((2, 3))

    words = r"did you mean 'make_layout'\?\n  at .*test_face.py:\d+: cute.make_layuot"
    with pytest.raises(TilewrightError, match=words):
        program()
