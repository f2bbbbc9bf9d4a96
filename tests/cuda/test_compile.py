"""Compiling without a GPU: resources, machine instructions, errors, dumps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda.build import HERE, Kernel, needs_nvrtc, pointer
from tests.cuda.test_text import saxpy
from tests.cuda.toy import ToyShuffle, gemm
from tilewright.cuda import artifact as artifacts
from tilewright.cuda import compile, nvrtc, toolchain
from tilewright.cuda.source import Source
from tilewright.errors import CompileError, ConstraintError, MachineError
from tilewright.ir.core import Location, Op
from tilewright.ir.instruction import Emitter, Instruction
from tilewright.ir.ops import SREGS
from tilewright.ir.types import (
    BF16,
    BOOL,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U32,
    U64,
    ScalarType,
    VecType,
)

needs_nvrtc()
ARCHS = ("sm_80", "sm_89", "sm_90a")
ARITHMETIC = "add sub mul div rem floordiv floormod min max pow".split()
BITS = "and or xor shl shr".split()
MATH = (
    "neg abs exp exp2 log log2 log10 sin cos tan asin acos atan tanh sqrt rsqrt rcp erf floor ceil round trunc".split()
)
NUMBERS = (I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, TF32, F32, F64, E4M3, E5M2)


@pytest.mark.parametrize("arch", ARCHS)
def test_wide_accesses_and_no_spills(arch: str) -> None:
    made = compile(saxpy().done(), arch)
    assert made.mnemonics()["LDG.E.128"] == 2 and made.mnemonics()["STG.E.128"] == 1
    assert (made.spills, made.stack, made.smem, made.warnings) == (0, 0, 0, [])
    assert 8 <= made.registers <= 32
    assert made.cubin.startswith(b"\x7fELF") and f".target {arch}" in made.ptx
    assert made.ir.startswith("kernel @saxpy") and made.cuda.startswith('#include "tilewright.cuh"')


@pytest.mark.parametrize("arch", ARCHS)
def test_a_tensor_core_tile_compiles_fast_and_keeps_its_registers(arch: str) -> None:
    made = compile(gemm().done(), arch)
    counts = made.mnemonics()
    assert counts["HMMA.16816.F32"] == 64 and counts["LDSM.16.M88.4"] == 16
    assert sum(n for name, n in counts.items() if name.startswith("LDGSTS") and "128" in name) == 8
    assert not any(name.startswith(("LDL", "STL")) for name in counts), "a fragment went to local memory"
    assert made.spills == made.stack == 0 and made.registers < 200 and made.smem == 49152
    assert made.seconds < 5


@pytest.mark.parametrize("elem, arch", [(t, "sm_90a") for t in NUMBERS] + [(t, "sm_80") for t in (BF16, E4M3)])
def test_every_operation_of_every_type_compiles(elem: ScalarType, arch: str) -> None:
    k = Kernel("everything", None, x=pointer(elem), flags=pointer(BOOL), **{str(t): pointer(t) for t in NUMBERS})
    at = 0

    def keep(value: object) -> None:
        nonlocal at
        k.store(k.at(k.x, at, elem.bytes), value)
        at += 8

    for n in (None, 4):
        a, b = k.load(k.x, n), k.load(k.at(k.x, 8), n)
        kind = VecType(elem, n) if n else elem
        flag = VecType(BOOL, n) if n else BOOL
        binary = ARITHMETIC[: -1 if n else None] + (["atan2", "copysign"] if elem.is_float else BITS)
        unary = ["neg", "abs", "not"] if not elem.is_float else MATH if not n else ["neg", "abs", "floor", "round"]
        for opcode in binary:
            keep(k.emit(opcode, (a, b), (kind,)).result)
        for opcode in unary:
            keep(k.emit(opcode, (a,), (kind,)).result)
            if elem.is_float:
                keep(k.emit(opcode, (a,), (kind,), {"fastmath": True}).result)
        keep(k.fma(a, b, a))
        for opcode in ("eq", "ne", "lt", "le", "gt", "ge"):
            test = k.emit(opcode, (a, b), (flag,)).result
            keep(k.emit("select", (test, a, b), (kind,)).result)
        for opcode in ("isnan", "isinf") if elem.is_float else ():
            k.store(k.at(k.flags, at), k.emit(opcode, (a,), (flag,)).result)
        for to in NUMBERS:
            k.store(k.args[str(to)], k.cast(a, to))
        if n:
            for reduction in ("add", "mul", "max", "min"):
                keep(k.reduce(a, reduction, [range(n)]))
    made = compile(k.done(), arch)
    assert made.spills == 0


@pytest.mark.parametrize("arch", ARCHS)
def test_every_special_register_compiles(arch: str) -> None:
    k = Kernel("registers", None, out=pointer(I32))
    for i, name in enumerate(sorted(SREGS)):
        k.store(k.at(k.out, i), k.sreg(name))
    assert compile(k.done(), arch).mnemonics()["STG.E"] >= len(SREGS)


def test_packed_arithmetic_of_half_precision() -> None:
    """Eight f16 multiplications and additions are four packed instructions each."""
    k = Kernel("packed", None, x=pointer(F16), y=pointer(F16))
    x, y = k.load(k.x, 8), k.load(k.y, 8)
    k.store(k.x, k.binary("add", k.binary("mul", x, y), y))
    counts = compile(k.done(), "sm_90a").mnemonics()
    assert sum(n for name, n in counts.items() if name.startswith(("HMUL2", "HADD2", "HFMA2"))) == 8
    assert "PRMT" not in counts


def test_conversion_to_half_is_packed() -> None:
    k = Kernel("narrowed", None, x=pointer(F32), y=pointer(F16))
    k.store(k.y, k.cast(k.load(k.x, 8), F16))
    counts = compile(k.done(), "sm_90a").mnemonics()
    assert counts["F2FP.F16.F32.PACK_AB"] == 4 and counts["STG.E.128"] == 1


def test_constant_offsets_become_immediates() -> None:
    k = Kernel("offsets", None, x=pointer(F32), i=I32)
    base = k.at(k.x, k.i, 4)
    for n in range(1, 9):
        k.store(k.at(base, n * 64, 4), k.cast(k.number(n), F32))
    sass = compile(k.done(), "sm_90a").sass
    assert "+0x100]" in sass and "+0x800]" in sass


def test_an_instruction_that_the_architecture_lacks_is_named() -> None:
    k = Kernel("shuffled", None, x=pointer(F32))
    k.loc = Location("/user/kernel.py", 21)
    (result,) = k.call(ToyShuffle(), [k.load(k.at(k.x, k.sreg("tid.x")))], (F32,))
    k.store(k.x, result)
    with pytest.raises(ConstraintError, match=r"toy.shuffle needs sm_90 or later.*sm_80 at /user/kernel.py:21"):
        compile(k.done(), "sm_80")
    assert compile(k.done(), "sm_90a").mnemonics()["SHFL.BFLY"] == 1


class Broken(Instruction):
    """Prints ``text``."""

    name = "toy.broken"

    def __init__(self, text: str) -> None:
        self.text = text

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(self.text)


def broken(text: str) -> Kernel:
    k = Kernel("broken", None, x=pointer(F32))
    k.loc = Location(HERE, 40)
    k.store(k.x, k.constant(F32, 1.0))
    k.loc = Location(HERE, 41)
    k.call(Broken(text), [])
    return k


@pytest.mark.parametrize("lineinfo", (False, True))
def test_errors_of_the_front_end_show_python_and_text(lineinfo: bool) -> None:
    with pytest.raises(CompileError) as caught:
        compile(broken("undeclared = 1;").done(), "sm_90a", lineinfo=lineinfo)
    text = str(caught.value)
    assert 'identifier "undeclared" is undefined' in text and f"printed from {HERE}:41" in text
    assert ">    5 |   undeclared = 1;" in text and "     4 |   *x = 1.0f;" in text


def test_errors_of_the_assembler_show_python_and_ptx() -> None:
    with pytest.raises(CompileError) as caught:
        compile(broken('asm volatile("add.nonsense %0, %0;" :: "r"(1));').done(), "sm_90a")
    text = str(caught.value)
    assert "add.nonsense" in text and f"{HERE}:41" in text


def test_line_information_names_python() -> None:
    made = compile(saxpy().done(), "sm_90a", lineinfo=True)
    assert Path(HERE).name in made.ptx and ".loc" in made.ptx
    assert "#line" not in made.cuda


def test_options_reach_the_compiler() -> None:
    function = gemm().done()
    del function.attrs["max_threads"]  # launch bounds would win
    assert compile(function, "sm_90a", options=("--maxrregcount=128",)).registers <= 128
    with pytest.raises(CompileError, match="NVRTC refused .*--no-such-option"):
        compile(saxpy().done(), "sm_90a", options=("--no-such-option",))


def test_dumps_can_be_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "dump"))
    compile(saxpy().done(), "sm_90a")
    names = {path.name for path in (tmp_path / "dump").iterdir()}
    found = {name.rpartition(".")[2] for name in names if name.startswith("saxpy.") and ".sm_90a." in name}
    assert found == {"ir", "cu", "ptx", "cubin", "log"}
    assert {"tilewright.cuh", "numbers.cuh"} < names


def test_without_a_disassembler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile(saxpy().done(), "sm_90a")
    toolchain.disassembler.cache_clear()
    monkeypatch.setattr(toolchain.shutil, "which", lambda *_, **__: None)
    with pytest.raises(MachineError, match="pip install nvidia-cuda-nvdisasm"):
        artifacts.disassemble(made.cubin)
    toolchain.disassembler.cache_clear()


def test_importing_needs_no_cuda_package() -> None:
    code = (
        "import sys, tilewright.cuda, tilewright.cuda.machine, tilewright.cuda.compiler\n"
        "assert not [m for m in sys.modules if m == 'torch' or m == 'numpy' or m.split('.')[0] == 'cuda']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_compiler_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = toolchain.Nvrtc("libthere_is_none.so", (13, 0), "broken")
    monkeypatch.setattr(toolchain, "installed", lambda: (broken,))
    with pytest.raises(MachineError, match=r"NVRTC cannot be loaded \(libthere_is_none.so: cannot open.*pip install"):
        compile(saxpy().done(), cache=False)


def test_a_refused_option_is_named() -> None:
    with pytest.raises(CompileError, match="NVRTC refused .*--no-such-option.*NVRTC_ERROR_INVALID_OPTION"):
        compile(saxpy().done(), options=("--no-such-option",), cache=False)


@pytest.mark.parametrize(("place", "shown"), [("mine.cu(2)", True), ("mine.cu(3)", False), ("other.h(2)", False)])
def test_a_complaint_of_nvrtc_names_the_python_line_if_there_is_one(place: str, shown: bool) -> None:
    """Not where it is about a header, or a line beyond the text."""
    source = Source("mine", "int a;\nint b = c;\n", (None, Location("user.py", 7)))
    told = nvrtc._explain(source, "sm_90a", (), "", f"{place}: error: identifier 'c' is undefined")
    assert told.startswith("mine does not compile for sm_90a: identifier 'c' is undefined")
    assert ("user.py:7" in told) == ("int b = c" in told) == shown
