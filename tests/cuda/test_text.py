"""The text of printed kernels: what a reader sees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.build import HERE, Kernel, pointer
from tests.cuda.test_semantics import branch, loop
from tilewright.cuda import emit
from tilewright.cuda.arithmetic import cast
from tilewright.cuda.expressions import Expr, literal, shortest_float32
from tilewright.cuda.source import Source
from tilewright.errors import ArgumentError, CompileError
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Block, Function, Location
from tilewright.ir.types import (
    BF16,
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U64,
    FragType,
    MemSpace,
    ScalarType,
    VecType,
)

SAXPY = """\
#include "tilewright.cuh"

extern "C" __global__ void __launch_bounds__(256) saxpy(float* x, float* y, float alpha, int n) {
  const int i = (int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x)) * 4;
  if (i < n) {
    tw::vec<float, 4> v = tw::load<4, 16>(x + i);
    tw::vec<float, 4> v_1 = tw::load<4, 16>(y + i);
    tw::vec<float, 4> v_2;
    #pragma unroll
    for (int e = 0; e < 4; ++e) v_2[e] = alpha * v[e] + v_1[e];
    tw::store<16>(y + i, v_2);
  }
}
"""


def saxpy() -> Kernel:
    k = Kernel("saxpy", {"max_threads": 256}, x=pointer(F32), y=pointer(F32), alpha=F32, n=I32)
    for name in ("ctaid.x", "ntid.x", "tid.x"):
        k.sreg(name).hint = None
    ctaid, ntid, tid = (op.result for op in k.block.ops)
    i = k.binary("mul", k.binary("add", k.binary("mul", ctaid, ntid), tid), k.number(4))
    i.hint = "i"

    def body() -> None:
        x, y = k.load(k.at(k.x, i, 16), 4), k.load(k.at(k.y, i, 16), 4)
        scaled = k.binary("mul", k.splat(k.alpha, 4), x)
        k.store(k.at(k.y, i, 16), k.binary("add", scaled, y))

    branch(k, k.compare("lt", i, k.n), body)
    return k


def test_saxpy_reads_as_one_would_write_it() -> None:
    assert saxpy().text == SAXPY


def test_the_text_has_one_origin_for_every_line() -> None:
    source = emit(saxpy().done())
    assert len(source.origins) == len(source.text.splitlines())
    assert source.origins[-3] == Location(HERE, 1)


def test_line_directives_point_to_python_and_leave_pragmas_alone() -> None:
    k = Kernel("lines", x=pointer(F32))
    k.loc = Location("/user/kernel.py", 7)
    v = k.load(k.x, 4)
    k.loc = Location("/user/kernel.py", 9)
    k.store(k.x, k.binary("add", v, v))
    annotated = emit(k.done()).annotated().splitlines()
    assert '#line 7 "/user/kernel.py"' in annotated and '#line 9 "/user/kernel.py"' in annotated
    for line, following in zip(annotated, annotated[1:], strict=False):
        assert not (line.lstrip().startswith("#pragma") and following.startswith("#line"))
    assert "#line" not in emit(k.done()).text


def test_user_names_are_kept_and_made_unique() -> None:
    k = Kernel("names", out=pointer(I32), float=I32)
    x = k.binary("add", k.float, k.number(1))
    y = k.binary("mul", x, k.number(2))
    x.hint, y.hint = "row", "row"
    k.store(k.out, y)
    assert "const int row = float_1 + 1;\n  const int row_1 = row * 2;\n  *out = row_1;" in k.text


@pytest.mark.parametrize(
    "unroll, pragma", ((None, None), (1, "#pragma unroll 1"), (4, "#pragma unroll 4"), ("full", "#pragma unroll"))
)
def test_unroll_pragmas(unroll: object, pragma: str | None) -> None:
    k = Kernel("rolled", out=pointer(I32))
    loop(
        k,
        k.number(0),
        k.number(8),
        k.number(1),
        [],
        lambda i: k.store(k.at(k.out, i), i) or (),
        hint="row",
        unroll=unroll,
    )
    lines = [line.strip() for line in k.text.splitlines()]
    at = lines.index("for (int row = 0; row < 8; ++row) {")
    assert (lines[at - 1] == pragma) if pragma else not lines[at - 1].startswith("#pragma")
    assert lines[at + 1] == "out[row] = row;"


def test_pointers_keep_constant_offsets_apart() -> None:
    """``p + i`` and then ``+ 3``: the constant stays an operand of its own, so that it becomes an immediate offset."""
    k = Kernel("offsets", x=pointer(F32), i=I32)
    base = k.at(k.x, k.i, 4)
    base.hint = "base"
    k.store(k.at(base, 3, 4), k.load(k.at(base, -2, 4)))
    assert "float* base = x + i;\n  const float t = base[-2];\n  base[3] = t;" in k.text


@pytest.mark.parametrize("align, width", ((16, 16), (8, 8), (4, 4), (2, 2), (128, 16)))
def test_accesses_are_as_wide_as_the_alignment(align: int, width: int) -> None:
    k = Kernel("wide", x=pointer(F16, align), y=pointer(F16, align))
    k.store(k.y, k.load(k.x, 8))
    assert f"tw::load<8, {width}>(x)" in k.text and f"tw::store<{width}>(y, v)" in k.text


def test_shared_memory_is_one_array() -> None:
    k = Kernel("shared", {"smem_bytes": 3072}, x=pointer(F16))
    a = k.smem_alloc(0, 1024, 1024, F16, "sA")
    b = k.smem_alloc(1024, 2048, 128, F32, "sB")
    k.store(a, k.load(k.x, 8))
    k.store(b, k.constant(F32, 1.0))
    assert "extern __shared__ __align__(1024) unsigned char smem[];" in k.text
    assert "tw::f16* sA = reinterpret_cast<tw::f16*>(smem);" in k.text
    assert "float* sB = reinterpret_cast<float*>(smem + 1024);" in k.text


def test_vector_parameters_stay_in_parameter_space() -> None:
    k = Kernel("described", descriptor=VecType(U64, 16), x=pointer(F32))
    k.store(k.x, k.constant(F32, 1.0))
    assert "const __grid_constant__ tw::tensor_map descriptor" in k.text


def test_clusters_are_stated_where_they_exist() -> None:
    k = Kernel("clustered", {"max_threads": 128, "min_blocks": 2, "cluster": (2, 1, 1)}, x=pointer(F32))
    k.store(k.x, k.constant(F32, 1.0))
    assert "__launch_bounds__(128, 2) __cluster_dims__(2, 1, 1) clustered(" in emit(k.done(), "sm_90a").text
    assert "__cluster_dims__" not in emit(k.done(), "sm_80").text


def test_an_assertion_names_the_line_of_python() -> None:
    k = Kernel("checked", n=I32)
    k.loc = Location("/user/kernel.py", 12)
    k.emit("assert", (k.compare("lt", k.n, k.number(4)),), (), {"message": "n is 100% too large"})
    assert 'tw::check(n < 4, "n is 100% too large", "/user/kernel.py", 12, "checked");' in k.text


def test_branches_carry_only_what_differs() -> None:
    k = Kernel("chosen", n=I32, out=pointer(I32))
    kept = k.binary("mul", k.n, k.number(3))
    same, _, differs = branch(
        k, k.compare("lt", k.n, k.number(4)), lambda: (kept, k.n, k.n), lambda: (kept, k.number(2), k.number(7))
    )
    k.store(k.out, k.binary("add", same, differs))
    branch(k, k.compare("lt", k.n, k.number(9)), lambda: (k.load(k.out),), lambda: (k.load(k.out),))
    assert "*out = t + t_1;\n}" in k.text, "unused values are not carried"
    assert "int t_1;\n  if (n < 4) {\n    t_1 = n;\n  } else {\n    t_1 = 7;\n  }\n  *out = t + t_1;" in k.text


def test_unused_values_are_not_printed() -> None:
    k = Kernel("quiet", x=pointer(F32))
    k.load(k.x, 4)
    k.binary("add", k.sreg("tid.x"), k.number(1))
    k.store(k.x, k.constant(F32, 2.5))
    assert k.text.splitlines()[3:] == ["  *x = 2.5f;", "}"]


# -- what cannot be printed --------------------------------------------------------------------------------------------


def test_host_functions_are_refused() -> None:
    with pytest.raises(CompileError, match="only kernels are printed"):
        emit(Function("launcher", "host", Block()))


@pytest.mark.parametrize("arch", ("90", "sm_", "hopper"))
def test_unknown_architectures_are_refused(arch: str) -> None:
    with pytest.raises(ArgumentError, match="unknown architecture"):
        emit(saxpy().done(), arch)


def test_carried_fragments_are_refused() -> None:
    k = Kernel("carried", n=I32)
    f = k.frag_alloc(F32, 4, "acc")
    with pytest.raises(CompileError, match="fragment cannot be carried by a loop"):
        loop(k, k.number(0), k.n, k.number(1), [f], lambda i, g: (g,))
        emit(k.done())


def test_fragment_parameters_are_refused() -> None:
    with pytest.raises(CompileError, match="fragment acc is in registers"):
        emit(Kernel("taken", acc=FragType(F32, 4)).done())


@pytest.mark.parametrize("text, count", (("{} {}", 1), ("%d", 0), ("{}", 2)))
def test_printf_fields_must_match(text: str, count: int) -> None:
    k = Kernel("talk", n=I32)
    k.emit("printf", (k.n,) * count, (), {"format": text})
    with pytest.raises(CompileError, match="printf.*field"):
        emit(k.done())


def test_shared_pointers_become_shared_addresses() -> None:
    k = Kernel("addresses", out=pointer(I32))
    s = k.smem_alloc(0, 64, 16, F32, "s")
    assert s.type.space == MemSpace.SMEM
    k.store(k.out, k.emit("ptr.toint", (k.at(s, 3),), (I32,)).result)
    assert "*out = int32_t(tw::shared_address(s + 3));" in k.text


def test_line_directives_name_files_of_every_system() -> None:
    for file, shown in (
        ("/home/u/a.py", "/home/u/a.py"),
        (r"C:\Users\u\new.py", "C:/Users/u/new.py"),
        (r"\\host\x.py", "//host/x.py"),
        (r'/tmp/a\b".py', r"/tmp/a\\b\".py"),
    ):
        assert f'#line 7 "{shown}"\n' in Source("k", "x;\n", (Location(file, 7),)).annotated()


@pytest.mark.parametrize(("elem", "wraps"), [(U8, False), (U16, True), (I32, True), (I64, True)], ids=str)
def test_products_that_may_overflow_an_int_of_c_are_unsigned(elem: ScalarType, wraps: bool) -> None:
    """C++ multiplies two ``uint16_t`` as ``int``, which 65535 * 65535 overflows; ``uint8_t`` cannot."""
    k = Kernel("product", x=pointer(elem), a=elem, b=elem)
    k.store(k.x, k.binary("mul", k.a, k.b, fits=False))
    assert ("tw::multiply(a, b)" in k.text) == wraps, k.text


@pytest.mark.parametrize(("narrow", "wraps"), [(I64, False), (I32, False), (I16, True)], ids=str)
def test_an_index_wraps_where_it_is_narrowed(narrow: ScalarType, wraps: bool) -> None:
    """That an index fits says nothing about a product of which it is the low half."""
    k = Kernel("index", x=pointer(F32), n=I32, m=I32)
    product = k.binary("mul", k.n, k.m, fits=False)
    k.store(k.at(k.x, k.cast(k.cast(product, narrow), I64)), k.constant(F32, 1.0))
    assert ("tw::multiply" in k.text) == wraps, k.text


@pytest.mark.parametrize("source", [F16, BF16, TF32, F32, F64, I32], ids=str)
def test_a_tf32_number_is_rounded_where_it_has_more_bits(source: ScalarType) -> None:
    text = cast(Expr("x"), source, TF32).text
    assert ("tw::to_tf32" in text) == (source in (F32, F64, I32))


FUNCTIONS = [name for name, row in TABLE.items() if row.operands < 3 and row.on(F32) is not None and not row.predicate]


@pytest.mark.parametrize("elem", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_fastmath_changes_the_functions_of_f32_that_have_a_fast_form_alone(opcode: str, elem: ScalarType) -> None:
    """Those of f16 are computed in f32, but for its own division."""
    row, texts = TABLE[opcode], []
    for attrs in ({}, {"fastmath": True}):
        k = Kernel("kernel", x=elem, y=elem, out=pointer(elem))
        k.store(k.out, k.emit(opcode, (k.x, k.y)[: row.operands], (elem,), attrs).result)
        texts.append(k.text)
    fast = "" if elem == F64 or (opcode, elem) == ("div", F16) else row.on(F32).fast
    assert (texts[0] != texts[1]) == bool(fast), texts
    assert not fast or f"{fast}(" in texts[1]


def test_a_float_has_the_fewest_digits_that_give_it_back() -> None:
    drawn = np.random.default_rng(5).integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    edges = [np.finfo(np.float32).max, np.finfo(np.float32).tiny, np.float32(1e-45), np.float32(-0.0)]
    for x in [*drawn[np.isfinite(drawn)], *edges, *(np.float32(2.0**k) for k in range(-149, 128))]:
        text = shortest_float32(float(x))
        assert np.float32(float(text)) == x and text[0] == str(x)[0]
        digits = [len(t.split("e")[0].lstrip("-").replace(".", "").strip("0")) for t in (text, str(x))]
        assert digits[0] <= digits[1] + (float(np.log2(abs(x) or 1)).is_integer())  # NumPy rounds powers of two down
    assert literal(F32, 1e300).text == "tw::infinity()" and literal(F32, -1e300).text == "-tw::infinity()"
    assert literal(F64, 1e300).text == "1e+300"
