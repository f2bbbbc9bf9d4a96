"""Every architecture from sm_80 to sm_121: what it has, what is refused, and the mma.sync kernels compiled for it."""

from __future__ import annotations

import functools
import itertools
import runpy
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.cuda.build import needs_nvrtc
from tilewright import cute, sim
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.registers import SetMaxRegisters
from tilewright.atoms.stmatrix import StMatrix
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.wgmma_sync import WgmmaCommit
from tilewright.cuda import compiler, emit
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, SimulationError
from tilewright.gemm import gemm, kernels, matmul
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.config import GemmConfig, HopperConfig
from tilewright.gemm.family.compile import stage
from tilewright.gemm.family.sm120 import SM120
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.sm120_config import Sm120Config
from tilewright.ir.core import Function
from tilewright.ir.instruction import Instruction
from tilewright.ir.target import MULTIPROCESSORS, architecture
from tilewright.lang.numbers.dtypes import numeric_of_dtype

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a"]
LIMITS = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99}
"""KiB of shared memory of a block, as the CUDA C++ Programming Guide has them."""


def attention() -> Function:
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(EXAMPLES)
        program = runpy.run_path(str(EXAMPLES / "attention.py"))
    q, k, v, out = (
        from_dlpack(np.zeros((64, 64, 1), np.float16), assumed_align=16).mark_layout_dynamic(leading_dim=1)
        for _ in range(4)
    )
    function: Function = cute.compile(program["forward"](64, True), q, k, v, out).kernels[0]
    return function


def tma() -> Function:
    """Copies of boxes without wgmma."""
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(EXAMPLES)
        program = runpy.run_path(str(EXAMPLES / "tma_copy.py"))
    x = np.zeros((256, 256), np.float32)
    program["prepared"](x, x.copy(), 4)
    (compiled,) = program["_compiled"].values()
    function: Function = compiled.kernels[0]
    return function


def elementwise() -> Function:
    @cute.kernel
    def axpy(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
        if i < cute.size(y):
            y[i] = x[i] * 2 + y[i]

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        axpy(x, y).launch(grid=(cute.ceil_div(cute.size(y), 128), 1, 1), block=(128, 1, 1))

    function: Function = cute.compile(run, *(from_dlpack(np.zeros(1000, np.float16)) for _ in range(2))).kernels[0]
    return function


OTHERS = {"attention": attention, "elementwise": elementwise, "tma": tma}


COMPILED = {
    "sm_80": ["tensorop_f16", "attention"],
    "sm_86": ["tensorop_f16"],
    "sm_87": ["elementwise"],
    "sm_89": ["tensorop_e4m3", "attention"],
    "sm_90a": ["tensorop_f16", "tma", "attention"],
    "sm_100a": ["tensorop_e4m3", "attention", "tma"],
    "sm_103a": ["tensorop_f16"],
    "sm_110a": ["tma", "elementwise"],
    "sm_120a": ["tensorop_f16", "tensorop_e4m3", "tma"],
    "sm_121a": ["attention"],
}
"""Every kernel on several architectures, every architecture with one or more kernels."""


@functools.cache
def staged(what: str) -> Function:
    """One of the kernels, staged once for all architectures."""
    if what in OTHERS:
        return OTHERS[what]()
    return stage(kernels()[what].config if what != "tensorop_f16" else kernels()[what].small[0])


@pytest.mark.parametrize("arch", TARGETS)
def test_kernels_of_mma_sync_compile(arch: str) -> None:
    needs_nvrtc()
    target = architecture(arch)
    for what in COMPILED[arch]:
        artifact = tilewright.cuda.compile(staged(what), arch)
        assert (artifact.arch, artifact.spills) == (arch, 0), what
        assert artifact.registers <= 255 and artifact.smem <= LIMITS[target.capability] * 1024
        assert ("mma.sync.aligned" in artifact.ptx) == (what not in ("elementwise", "tma")), what
        assert ("cp.async.bulk.tensor" in artifact.ptx) == (what == "tma"), what
        assert f".target {arch}\n" in artifact.ptx


def test_the_table_holds_what_the_guide_says() -> None:
    assert {n: MULTIPROCESSORS[n].smem_kib for n in LIMITS} == LIMITS
    assert {n for n, unit in MULTIPROCESSORS.items() if unit.warps == 48} == {86, 87, 89, 101, 110, 120, 121}


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_100a", "sm_120a"])
def test_a_kernel_of_wgmma_is_for_sm_90a_alone(arch: str) -> None:
    with pytest.raises(ConstraintError, match=rf"needs .*the kernel is compiled for {arch} at .*\.py:\d+"):
        emit(staged("hopper_f16"), arch)


def test_instructions_missing_on_a_target_are_named() -> None:
    def lacking(atom: Instruction, *archs: str) -> list[str]:
        return [atom.lacking(architecture(arch)) for arch in archs]

    wgmma = "sm_90a (no other GPU has it)"
    assert lacking(WgmmaCommit(), "sm_90a", "sm_90", "sm_100a", "sm_120a", "sm_80") == ["", *[wgmma] * 4]
    registers = "sm_90a, sm_100a, sm_103a, sm_110a, sm_120a or sm_121a"
    assert lacking(SetMaxRegisters(40, False), "sm_90a", "sm_120a", "sm_100f", "sm_90") == ["", "", "", registers]
    assert lacking(StMatrix(4), "sm_120", "sm_89") == ["", "sm_90 or later"]
    e4m3 = next(atom for atom in MMA_SYNC.values() if "E4M3" in atom.cute_name)
    assert lacking(e4m3, "sm_89", "sm_121", "sm_87") == ["", "", "sm_89 or later"]


@pytest.mark.parametrize(
    ("dtype", "scope", "needed"),
    [(cutlass.BFloat16, "gpu", "sm_90 or later for bf16"), (cutlass.Float32, "cluster", "sm_90 or later")],
)
def test_atomics_that_came_with_hopper(dtype: type, scope: str, needed: str) -> None:
    @cute.kernel
    def add(x: cute.Tensor):
        cute.arch.atomic_add(x.iterator, dtype(1), scope=scope)

    @cute.jit
    def run(x: cute.Tensor):
        add(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = from_dlpack(np.zeros(4, dtype.dtype))
    (kernel,) = cute.compile(run, x).kernels
    assert "atom" in emit(kernel, "sm_90").text or "red" in emit(kernel, "sm_120a").text
    with pytest.raises(ConstraintError, match=rf"needs {needed}, the kernel is compiled for sm_89 at .*\.py:\d+"):
        emit(kernel, "sm_89")
    text = f"needs {needed}; the kernel is meant for sm_86"
    with sim.options(arch="sm_86"), pytest.raises(SimulationError, match=text):
        run(x)


@pytest.mark.parametrize(("arch", "fits"), [("sm_86", False), ("sm_87", True), ("sm_90a", True), ("sm_120a", False)])
def test_more_shared_memory_than_a_block_gets_is_refused_before_compiling(
    arch: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reached(Exception): ...

    def reached(*_: object) -> None:
        raise Reached

    monkeypatch.setattr(compiler, "emit", reached)
    kernel = stage(kernels()["tensorop_f16"].large)  # 120 KiB
    with pytest.raises(Reached if fits else ConstraintError, match=None if fits else r"122880 bytes .* 101376 on sm_"):
        tilewright.cuda.compile(kernel, arch)


def test_the_simulated_gpu_has_the_shared_memory_of_its_architecture() -> None:
    @cute.kernel
    def big(out: cute.Tensor):
        smem = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(30 * 1024), 128)
        smem[cute.arch.thread_idx()[0]] = 1.0
        out[cute.arch.thread_idx()[0]] = smem[cute.arch.thread_idx()[0]]

    @cute.jit
    def run(out: cute.Tensor):
        big(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros(32, np.float32)
    for arch in ("", "sm_80", "sm_90a", "sm_110"):
        with sim.options(arch=arch):
            run(from_dlpack(out))
        assert out.sum() == 32
        out[:] = 0
    for arch in ("sm_86", "sm_120a"):
        with sim.options(arch=arch), pytest.raises(SimulationError, match=rf"122880 bytes.*101376 \(99 KB\) on {arch}"):
            run(from_dlpack(out))
    assert out.sum() == 0


OWN = {90: HopperConfig, **dict.fromkeys(TCGEN05, BlackwellConfig), **dict.fromkeys(SM120, Sm120Config)}
SHAPES = [(4096, 4096, 4096), (4096, 8192, 512), (64, 4096, 4096), (100, 300, 5000), (5, 4096, 4096), (8192, 8192, 64)]


@pytest.mark.parametrize("arch", TARGETS)
def test_gemm_takes_sizes_that_fit(arch: str) -> None:
    """Every plan is one that a GPU of the architecture can launch: wgmma on sm_90, tcgen05 on sm_100 and
    its like, mma.sync with TMA on sm_120, mma.sync on all; tiles by shared memory."""
    capability = architecture(arch).capability
    kinds = [np.float16, ml_dtypes.bfloat16, np.float32, np.int8, np.float64]
    kinds += [ml_dtypes.float8_e4m3fn] if capability >= 89 else []
    for kind, (m, n, k) in itertools.product(kinds, SHAPES):
        entries = candidates(numeric_of_dtype(np.dtype(kind)), None)
        a, b = np.empty((m, k), kind), np.empty((n, k), kind).T
        for how in ("auto", "data_parallel", "stream_k"):
            with sim.options(arch=arch, sizes="gpu"):
                plan = Plan.of(Problem.of(a, b, out_dtype=entries[0].config.c.dtype), entries, how, "cpu")
            assert plan.config.smem_bytes <= LIMITS[capability] * 1024, (kind, m, n, k, how)
            own = OWN.get(capability, GemmConfig)
            assert isinstance(plan.config, (own, GemmConfig))
            if how == "auto" and kind is np.float16 and min(m, n) >= 4096:
                assert isinstance(plan.config, own)


def test_gemm_runs_on_a_simulated_gpu_of_each_kind() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (96, 96)).astype(np.float16) for _ in range(2))
    for arch, kernel in (("sm_86", "tensorop_f16"), ("sm_90a", "hopper_f16"), ("sm_120a", "sm120_f16")):
        with sim.options(arch=arch, sizes="gpu"):
            report = gemm(a, b)
        assert np.array_equal(report.d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
        assert report.kernel == kernel, arch
        assert arch == "sm_90a" or f"sm_{arch[3:].rstrip('a')} does not" in report.passed_over["hopper_f16"]


def test_a_product_that_was_seen_before_is_planned_anew_for_another_gpu() -> None:
    torch = pytest.importorskip("torch")
    a = torch.ones(64, 64, dtype=torch.float16)
    for arch in ("", "sm_120a", "sm_86", ""):  # a Hopper kernel would not fit on the second and third
        with sim.options(arch=arch):
            assert (matmul(a, a) == 64).all()


def test_fp8_is_refused_where_no_instruction_multiplies_it() -> None:
    a = np.zeros((64, 64), ml_dtypes.float8_e4m3fn)
    text = "needs sm_89, and sm_86 has none for Float8E4M3FN"
    with sim.options(arch="sm_86"), pytest.raises(ArgumentError, match=text):
        gemm(a, a, out=np.zeros((64, 64), np.float16))
