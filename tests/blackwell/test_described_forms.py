"""``tcgen05.mma.ws``, ``.sp`` and the collector buffers by the primitives: exact products of integers, against NumPy.

Operands are K-major without a swizzle: rows of 16 bytes, 8 of which are together; such a matrix is built here byte by
byte, and metadata word by word, from the words of the documentation, not from the atoms' layouts.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tests.cuda.build import needs_nvrtc
from tilewright import cute
from tilewright.atoms.tcgen05_described import DescribedMma
from tilewright.atoms.tcgen05_zero_columns import ZeroColumns
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError
from tilewright.experimental import primitives as prims
from tilewright.ir.builder import Builder

F32, I32 = cutlass.Float32, cutlass.Int32
TYPES = {
    "f16": (cutlass.Float16, F32, np.float16),
    "tf32": (cutlass.TFloat32, F32, np.float32),
    "f8f6f4": (cutlass.Float8E4M3FN, F32, ml_dtypes.float8_e4m3fn),
    "i8": (cutlass.Int8, I32, np.int8),
    "mxf8f6f4": (cutlass.Float8E4M3FN, F32, ml_dtypes.float8_e4m3fn),
    "mxf4nvf4": (cutlass.Float4E2M1FN, F32, ml_dtypes.float4_e2m1fn),
}
BITS = {"f16": 16, "tf32": 32, "f8f6f4": 8, "i8": 8, "mxf8f6f4": 8, "mxf4nvf4": 4}
PAIRS = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)


class Form(NamedTuple):
    kind: str
    m: int
    n: int
    ws: bool = False
    sparse: bool = False
    selector: int = 0
    collector: tuple[str, ...] = ("", "")
    mask: int | None = None
    max_shift: int = 0
    nonsense: bool = False
    unlike: bool = False
    negate: bool = False
    fill_metadata: bool = True
    refill: bool = False
    metadata_at: int = 0

    @property
    def scaled(self) -> bool:
        return self.kind.startswith("mx")

    @property
    def k(self) -> int:
        return (256 // BITS[self.kind]) << self.sparse


def as_bytes(matrix: Any, kind: str) -> Any:
    """A matrix (rows, K) in the order of the descriptor: 16 bytes of a row, 8 rows, then along K, then further rows."""
    rows = matrix.shape[0]
    if kind == "mxf4nvf4":
        codes = matrix.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        data = codes[:, ::2] | codes[:, 1::2] << 4
    else:
        data = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, -1)
    return np.ascontiguousarray(data.reshape(rows // 8, 8, -1, 16).transpose(0, 2, 1, 3)).reshape(-1)


def sparse_operand(form: Form, rng: Any) -> tuple[Any, Any, Any]:
    """A (M, K) with its zeros, what is stored of it, and the 4 bits of each chunk."""
    m, k, unit = form.m, form.k, {"tf32": 0, "mxf4nvf4": 2}.get(form.kind, 1)
    chunks = k // {0: 2, 1: 4, 2: 8}[unit]
    nibbles = rng.choice((0b0100, 0b1110) if unit == 0 else PAIRS, (m, chunks))
    stored = rng.integers(-2, 3, (m, k // 2))
    full = np.zeros((m, k))
    for row in range(m):
        for chunk in range(chunks):
            low, high = nibbles[row, chunk] & 3, nibbles[row, chunk] >> 2
            if unit == 0:
                full[row, 2 * chunk + high // 2] = stored[row, chunk]
            else:
                for i, place in enumerate((low, high)):
                    at = 4 * unit * chunk + unit * place
                    full[row, at : at + unit] = stored[row, unit * (2 * chunk + i) : unit * (2 * chunk + i + 1)]
    return full, stored, nibbles


def metadata_words(form: Form, nibbles: Any) -> Any:
    """``[128, 2]`` words of tensor memory. Of 16 and 32 bits, of each 16 lanes the first 8 have the first half of K and
    the others the second; row r is in the low, row r + 8 in the high half of a word. Else a lane has a row."""
    words = np.zeros((128, 4), np.uint32)
    for row, of_row in enumerate(nibbles):
        for chunk, nibble in enumerate(of_row.tolist()):
            if BITS[form.kind] >= 16:
                half, inside = divmod(chunk, len(of_row) // 2)
                lane, column = row // 16 * 16 + row % 8 + 8 * half, form.selector
                bit = 16 * (row % 16 // 8) + 4 * inside
            else:
                lane, (column, inside) = row, divmod(chunk, 8)
                bit = 4 * inside
            for copy in range(128 // form.m if form.ws else 1):
                words[lane + copy * form.m, column] |= nibble << bit
    return words[:, :2]


def run(form: Form, grid: bool = False) -> tuple[Any, Any, Any]:
    """D of two MMAs, the second of which adds to the first, what NumPy says it is, and the compiled program."""
    ab, acc, dtype = TYPES[form.kind]
    rng = np.random.default_rng(len(form.kind) + form.m + form.n)
    m, n, k = form.m, form.n, form.k
    shift = (form.mask or 0) >> 56
    if form.sparse:
        x, stored, nibbles = sparse_operand(form, rng)
        if form.nonsense:
            nibbles[3, 1] = 0b0101
    else:
        x = stored = rng.integers(-2, 3, (m, k))
        nibbles = np.zeros((m, 0), int)
    w = rng.integers(-2, 3, (n + 8 * (shift > 0), k))
    a_bytes, b_bytes = (as_bytes(z.astype(dtype), form.kind) for z in (stored, w))
    meta = metadata_words(form, nibbles)
    if form.unlike:
        meta[-1, form.selector % 2] ^= 0b1000
    columns = max(32, n * m // 128)
    row_bytes = {"a": a_bytes.size // m, "b": b_bytes.size // len(w)}
    mask = form.mask

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, e: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(2 * columns, acc)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        s_a, s_b = (
            cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Uint8, cute.make_layout(cute.size(z)), 128)
            for z in (a, b)
        )
        for i in range(t, cute.size(a), 128):
            s_a[i] = a[i]
        for i in range(t, cute.size(b), 128):
            s_b[i] = b[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        lanes = base.toint() + (warp << 21)
        if cutlass.const_expr(form.fill_metadata):
            own = cutlass.Vector.from_elements((e[2 * t], e[2 * t + 1]), cutlass.Uint32)
            prims.tcgen05_st("32x32b", prims.make_tmem_ptr(lanes + columns, cutlass.Uint32), own)
        ones = cutlass.Vector.from_elements(tuple(cutlass.Uint32(0x7F7F7F7F) for _ in range(16)), cutlass.Uint32)
        if cutlass.const_expr(form.scaled):
            prims.tcgen05_st("32x32b", prims.make_tmem_ptr(lanes + columns + 4, cutlass.Uint32), ones)
        prims.tcgen05_wait("store")
        prims.tcgen05_fence("before_thread_sync")
        cute.arch.sync_threads()
        prims.tcgen05_fence("after_thread_sync")
        if warp == 0:
            build = prims.Tcgen05InstrDesc.build
            how: Any = {"c_dtype": acc, "sparsity_selector": form.selector, "max_shift": form.max_shift}
            if cutlass.const_expr(form.scaled):
                build = (prims.Tcgen05MxOmmaInstrDesc if ab.width == 4 else prims.Tcgen05MxInstrDesc).build
                how = {"scale_format": 1}
            word = build(a_dtype=ab, b_dtype=ab, m_dim=m, n_dim=n, sparse=form.sparse, a_negate=form.negate, **how)
            descriptors = [
                prims.Tcgen05SmemDesc.build(
                    z,
                    leading_byte_offset=128,
                    stride_byte_offset=8 * row_bytes[x],
                    layout=prims.Tcgen05SmemSwizzle.NONE,
                )
                for x, z in (("a", s_a.iterator), ("b", s_b.iterator))
            ]
            at = base.toint() + columns + form.metadata_at
            metadata = prims.make_tmem_ptr(at, cutlass.Uint32) if form.sparse else None
            for turn in cutlass.range_constexpr(2):
                collector = form.collector[turn] or None
                common = (prims.make_tmem_ptr(base.toint(), acc), *descriptors, word, turn > 0)
                if prims.elect_sync():
                    if cutlass.const_expr(form.ws):
                        prims.tcgen05_mma_ws(
                            form.kind,
                            *common,
                            sparse_metadata=metadata,
                            zero_column_mask=mask,
                            collector_b_buffer="b2",
                            collector_op=collector,
                        )
                    elif cutlass.const_expr(form.scaled):
                        factors = prims.make_tmem_ptr(base.toint() + columns + 4, cutlass.Uint32)
                        prims.tcgen05_mma_block_scale(
                            form.kind,
                            "cta_1",
                            *common,
                            factors,
                            factors,
                            sparse_metadata=metadata,
                            scale_vec_size="X2" if form.kind == "mxf4nvf4" else None,
                            collector_op=collector,
                        )
                    else:
                        prims.tcgen05_mma(form.kind, "cta_1", *common, sparse_metadata=metadata, collector_op=collector)
                    prims.tcgen05_commit(done)
                cute.arch.mbarrier_wait(done, turn)
                if cutlass.const_expr(form.refill and turn == 0):
                    s_a[0] = s_a[0] ^ cutlass.Uint8(0x80)
                    cute.arch.fence_proxy("async.shared", space="cta")
                    cute.arch.sync_warp()
        prims.tcgen05_fence("before_thread_sync")
        cute.arch.sync_threads()
        prims.tcgen05_fence("after_thread_sync")
        for part in cutlass.range_constexpr(columns // 32):
            values = prims.tcgen05_ld("32x32b", prims.make_tmem_ptr(lanes + 32 * part, acc), num=32)
            prims.tcgen05_wait("load")
            for i in cutlass.range_constexpr(32):
                if cutlass.const_expr(32 * part + i < n * m // 128 or not form.ws):
                    y[t, 32 * part + i] = values[i]
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 2 * columns)

    y = np.zeros((128, columns), acc.numpy_dtype)
    arrays = [from_dlpack(z, assumed_align=16) for z in (a_bytes, b_bytes, meta.reshape(-1), y)]
    launch(kernel, *arrays, block=128)
    found = y[:, : n * m // 128]
    if form.ws:  # the lanes after the first M have the next part of N
        found = found.reshape(128 // m, m, -1).transpose(1, 0, 2).reshape(m, n)
    expected = 2 * x @ w[shift : shift + n].T
    return found, -expected if form.negate else expected, kernel


FORMS = [
    *(
        Form(kind, m, n, ws=True)
        for kind, m, n in (("f16", 32, 128), ("tf32", 64, 64), ("i8", 32, 256), ("f8f6f4", 128, 64))
    ),
    *(Form(kind, 128, 32, sparse=True, selector=s) for kind in ("f16", "tf32") for s in (0, 1)),
    *(Form(kind, 128, 32, sparse=True) for kind in ("f8f6f4", "i8", "mxf8f6f4", "mxf4nvf4")),
    Form("f16", 32, 64, ws=True, sparse=True, selector=1),
    Form("i8", 64, 128, ws=True, sparse=True),
    Form("f16", 32, 64, ws=True, collector=("fill", "lastuse")),
    Form("f16", 128, 32, sparse=True, collector=("fill", "use")),
    Form("f16", 128, 32, negate=True),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_products(form: Form) -> None:
    found, expected, _ = run(form)
    np.testing.assert_array_equal(found, expected)


def descriptor(use: int, skip: int, starts: tuple[int, ...] = (), first: tuple[int, ...] = (), shift: int = 0) -> int:
    """A zero-column mask descriptor of the fields' names in PTX's table."""
    word = 1 << 39 | skip << 40 | use << 48 | shift << 56
    for i, (start, zeros) in enumerate(zip(starts, first, strict=True)):
        word |= start << 8 * i | zeros << 32 + i
    return word


@pytest.mark.parametrize(
    ("m", "word", "masks"),
    [  # the examples of PTX's page, the first column at the right
        (128, 4 << 40 | 3 << 48, ["0000000000000000"]),
        (128, descriptor(3, 2), ["11100001110000"]),
        (64, descriptor(3, 2, (0, 0), (1, 0)), ["11100001110000111", "000011100001110000"]),
        (
            32,
            descriptor(3, 2, (0, 1, 2, 1), (1, 1, 0, 0), 2),
            ["00001110000111", "0000111000011", "111000011100", "1110000111000"],
        ),
    ],
)
def test_columns_that_are_zeros(m: int, word: int, masks: list[str]) -> None:
    n = 128
    form = Form("f16", m, n, ws=True, mask=word, max_shift=8 if word >> 56 else 0)
    found, expected, _ = run(form)
    zeros = (found == 0).all(0).reshape(len(masks), -1)  # no column of w is zero by chance
    known = [[int(bit) for bit in reversed(mask)] for mask in masks]
    for part, wanted in zip(zeros, known, strict=True):
        np.testing.assert_array_equal(part[: len(wanted)], wanted)
    np.testing.assert_array_equal(found, np.where((found == 0).all(0), 0, expected))


@pytest.mark.parametrize(("m", "shift", "most"), [(32, 16, 16), (64, 32, 32), (128, 8, 8)])
def test_shifts_that_an_mma_has(m: int, shift: int, most: int) -> None:
    """32 columns at most, 16 with M = 32, and no more than the instruction descriptor says."""
    limit = 8 if m == 128 else 32
    ZeroColumns.of_word(shift << 56).check(m, limit)
    with pytest.raises(ConstraintError, match=f"shifts B by {shift + 1} columns; .* the most is {most}"):
        ZeroColumns.of_word(shift + 1 << 56).check(m, limit)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (Form("f16", 32, 64, ws=True, collector=("", "use")), "uses collector buffer b2, which nothing has filled"),
        (Form("f16", 32, 64, ws=True, collector=("fill", "discard")), ""),
        (Form("f16", 128, 32, collector=("use", "")), "uses collector buffer a, which nothing has filled"),
        (
            Form("f16", 128, 32, collector=("fill", "use"), refill=True),
            "uses collector buffer a, which holds another matrix than is in memory now",
        ),
        (Form("f16", 128, 32, sparse=True, nonsense=True), "metadata 0b0101 of row 3, chunk 1 of A, which has no"),
        (Form("f16", 32, 64, ws=True, sparse=True, unlike=True), "metadata of A that is not the same for all 4 parts"),
        (Form("f16", 128, 32, sparse=True, fill_metadata=False), "metadata of A in tensor memory that nothing has"),
        (Form("f16", 128, 32, sparse=True, selector=2), "sparsity selector 2; of kind f16 it is 0 or 1"),
        (Form("i8", 128, 32, sparse=True, selector=1), "sparsity selector 1; of kind i8 it is 0"),
        (Form("f16", 128, 32, sparse=True, metadata_at=1), "begins in lane 0, and at an even column"),
        (Form("f16", 128, 32, sparse=True, metadata_at=1 << 16), "begins in lane 0"),
        (
            Form("f16", 128, 32, sparse=True, metadata_at=32),
            "touches column 64 of tensor memory, which is not allocated",
        ),
        (Form("f16", 64, 32, sparse=True), "a sparse A of 64 rows in a block is not here"),
        (Form("f16", 64, 256, ws=True, sparse=True), "N 64 or 128, K 32"),
        (Form("f16", 32, 64, ws=True, mask=20 << 56, max_shift=32), "shifts B by 20 columns; .*the most is 16"),
        (Form("f16", 32, 64, ws=True, mask=1 << 36), "0x0000001000000000 has bits that must be 0"),
        (Form("i8", 128, 32, negate=True), "only floats are negated"),
        (Form("f16", 128, 32, max_shift=8), "has a max_shift, which is for .ws"),
        (Form("f16", 128, 32, collector=("keep", "")), "'keep' is not a Tcgen05MMACollectorOp"),
        (Form("mxf8f6f4", 128, 64, ws=True), "tcgen05.mma.ws.*is for one block, and for kinds without block scales"),
    ],
    ids=str,
)
def test_mistakes(form: Form, message: str) -> None:
    if not message:
        run(form)
        return
    with pytest.raises(
        (ConstraintError, SimulationError), match=f"(?s){re.escape(message) if '.*' not in message else message}"
    ):
        run(form)


def every_form() -> list[DescribedMma]:
    """Those of sm_100a: kinds, sources, pairs, and what collector buffers are told."""
    found = []
    for kind, factors in (
        ("f16", 0),
        ("tf32", 0),
        ("f8f6f4", 0),
        ("i8", 0),
        ("mxf8f6f4", 1),
        ("mxf4", 2),
        ("mxf4nvf4", 4),
    ):
        for source in ("SS", "TS"):
            for sparse in (False, True):
                for ctas in (1, 2):
                    found.append(
                        DescribedMma(kind, ctas, source, factors, sparse, collector="a::fill" if ctas == 1 else "")
                    )
                if not factors:
                    found.append(DescribedMma(kind, 1, source, 0, sparse, True, source == "SS", "b3::lastuse"))
    return found


@pytest.mark.parametrize("ctas", [1, 2])
def test_every_form_assembles(ctas: int) -> None:
    needs_nvrtc()
    forms = [form for form in every_form() if form.ctas == ctas]

    @cute.kernel
    def kernel(x: cute.Tensor):
        word = cutlass.Int64(x[0])
        for form in forms:
            kinds = {"E": I32, "SFA": I32, "SFB": I32, "zero columns": cutlass.Int64}
            left = word if form.source == "SS" else I32(word)
            operands = [I32(word), left, word, I32(word), cutlass.Boolean(word > 0)]
            operands += [kinds[name](word) for name in form.further]
            Builder.current().call(form, [operand.ir_value() for operand in operands], ())

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(ctas, 1, 1), block=(32, 1, 1), cluster=(ctas, 1, 1))

    function = cute.compile(host, from_dlpack(np.zeros(1, np.int64))).kernels[0]
    text = tilewright.cuda.compile(function, "sm_100a").ptx
    for form in forms:
        assert re.search(rf"{re.escape(form.mnemonic())} \[", text), form.mnemonic()
