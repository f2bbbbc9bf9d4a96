"""What the shipped kernels compile to, for every architecture, without a GPU: instructions, spills, conflicts."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.covering import covering
from tilewright import cuda
from tilewright.errors import TilewrightError
from tilewright.gemm import Major, cross_compile, gemm, kernels, stage
from tilewright.ir.core import Function

TENSOROP = ["tensorop_f16", "tensorop_bf16"]
FP8 = ("tensorop_e4m3", "tensorop_e5m2")
AMPERE = [name for name in kernels() if not name.startswith(("hopper", "blackwell", "sm120", "small_m"))]
ARCHS = ("sm_80", "sm_90a")
COMPILED = [
    *((name, arch) for name in TENSOROP for arch in ARCHS),
    *covering([name for name in AMPERE if name not in (*TENSOROP, *FP8)], ARCHS, strength=1),
    *zip(FP8, ("sm_89", "sm_90a"), strict=True),
]


def mnemonics(sass: str) -> list[str]:
    """The instructions in order, without predicates and operands."""
    return re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", sass, re.MULTILINE)


@functools.cache
def compiled(name: str, arch: str) -> Any:
    return cuda.compile(staged(name), arch)


@functools.cache
def staged(name: str) -> Function:
    return stage(kernels()[name].config)


@pytest.mark.parametrize(("name", "arch"), COMPILED)
def test_kernels_have_no_spills_and_wide_accesses(name: str, arch: str) -> None:
    artifact = compiled(name, arch)
    assert artifact.spills == 0
    assert artifact.registers <= 255
    text = artifact.ptx
    assert re.search(r"cp\.async\.cg\.shared\.global\S* \S+ \[\S+\], 16", text), "global to shared in 16 bytes"
    assert "st.global.v4." in text, "D leaves in 16 bytes"
    assert "ld.global.v4." in text, "C comes in 16 bytes"
    if name in TENSOROP:
        check_that_tensor_cores_run_back_to_back(mnemonics(artifact.sass))


def check_that_tensor_cores_run_back_to_back(found: list[str]) -> None:
    assert "LDSM.16.M88.4" in found and "LDSM.16.MT88.4" in found
    first = next(i for i, m in enumerate(found) if m.startswith("HMMA"))
    last = max(i for i, m in enumerate(found) if m.startswith("HMMA"))
    loop = found[first : last + 1]
    hmma = sum(m.startswith("HMMA") for m in loop)
    assert hmma >= 64
    assert len(loop) < 2.5 * hmma, "little else than HMMA in the main loop"
    assert not any(m.startswith(("LDL", "STL")) for m in found), "no local memory"


def test_large_tiles_do_not_spill() -> None:
    for name in TENSOROP:
        artifact = cross_compile(kernels()[name].large, "sm_90a")
        assert artifact.spills == 0 and artifact.registers <= 255


@pytest.mark.parametrize(
    ("name", "of_a", "of_b"),
    covering([*TENSOROP, "tensorop_f16_f16", "tensorop_tf32", "tensorop_f64"], Major, Major, strength=1),
)
def test_operands_read_element_by_element_do_not_spill(name: str, of_a: Major, of_b: Major) -> None:
    config = kernels()[name].narrow
    a, b = (
        replace(operand, major=major, copy_bits=operand.dtype.width)
        for operand, major in ((config.a, of_a), (config.b, of_b))
    )
    c = replace(config.c, copy_bits=config.c.dtype.width)
    assert cross_compile(replace(config, a=a, b=b, c=c), "sm_90a").spills == 0


@pytest.mark.parametrize("name", FP8)
def test_fp8_needs_its_architecture(name: str) -> None:
    with pytest.raises(TilewrightError, match="sm_89"):
        kernels()[name].compile("sm_80")


def unturned(name: str) -> list[str]:
    """The operand majors that reach shared memory as they are: the others are turned element by element. Tiles of bf16
    lie as those of f16 do."""
    return ["NN", "NT", "TN", "TT"] if name in ("simt_f32", "tensorop_f16") else ["NT"]


@pytest.mark.unchecked
@pytest.mark.parametrize(("name", "majors"), [(name, majors) for name in AMPERE for majors in unturned(name)])
def test_kernels_have_no_bank_conflicts(name: str, majors: str) -> None:
    """In one tile of several k tiles, in every size."""
    rng = np.random.default_rng(0)
    entry = kernels()[name]
    dtype = np.dtype(np.float32) if name == "tensorop_tf32" else entry.config.a.dtype.dtype
    for config in dict.fromkeys(filter(None, (entry.config, entry.shared, entry.large, *entry.small))):
        m, n, k = config.tile[0], config.tile[1], 2 * config.tile[2]
        a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, k), (k, n)))
        a, b = (x if major == "N" else np.asfortranarray(x) for x, major in zip((a, b), majors, strict=True))
        c = np.ones((m, n), entry.config.c.dtype.dtype)
        report = gemm(a, b, c, beta=1.0, kernel=entry.only(config), decomposition="data_parallel")
        assert (report.tile, report.bank_conflicts) == (config.tile, 0)
