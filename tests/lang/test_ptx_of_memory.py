"""Inline PTX that reaches memory, or at which threads meet: the operations of the language, and all that is checked of
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import Float16, Float32, Int32, Int64, Uint32, Uint64, const_expr, cute, range_constexpr, sim
from tilewright._mlir.dialects import llvm
from tilewright.cute import arch
from tilewright.cutlass_dsl import T
from tilewright.errors import TilewrightError
from tilewright.testing import per_thread


def asm(res: Any, text: str, constraints: str, *operands: Any) -> Any:
    return llvm.inline_asm(res, [x.ir_value() for x in operands], text, constraints, has_side_effects=True)


def loaded(text: str, *operands: Any) -> Any:
    return Uint32(
        asm(
            T.ui32(),
            text,
            "=r," + ",".join("l" if isinstance(x, (Int64, Uint64)) else "r" for x in operands),
            *operands,
        )
    )


WORDS = [0x89ABCDEF, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("back", [Uint64(2**64 - 8), Int64(-8), Uint64(2**63) + Uint64(2**63 - 8)])
def test_addresses_go_backwards_by_large_numbers_without_sign(back: Any) -> None:
    memory = np.array(WORDS, np.uint32)

    def reads(t: Any, p: Any) -> tuple[Any, ...]:
        address = (p + 2 + t).toint()
        moved = p.toint() + Uint64(t * 4) + Uint64(8) + Uint64(back)
        pointer = cute.make_ptr(Uint32, address + back, cute.AddressSpace.gmem, assumed_align=4)
        at = [loaded("ld.global.u32 $0, [$1];", Int64(x)) for x in (address + back, back + address, moved)]
        return (
            *at,
            loaded("ld.global.u32 $0, [$1];", address + back),
            (p + 2 + t)[back // 4 if back < 0 else -2],
            pointer[0],
        )

    for row in range(6):
        found, _ = per_thread(lambda t, p, row=row: reads(t, p)[row], 4, dtype=Uint32, memory=memory)
        assert [int(x) for x in found] == WORDS[:4], row


def test_addresses_in_shared_memory_go_backwards() -> None:
    def read(t: Any, p: Any) -> Any:
        words = cute.make_tensor(arch.alloc_smem(Uint32, 8), cute.make_layout(8))
        words[t] = Uint32(t + 10)
        arch.sync_threads()
        address = (words.iterator + 4 + t % 4).toint()
        return loaded("ld.shared.u32 $0, [$1];", Uint32(address) + Uint32(2**32 - 16))

    found, _ = per_thread(read, 8, dtype=Uint32, memory=np.array(WORDS, np.uint32))
    assert [int(x) for x in found] == [10, 11, 12, 13] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.u32 $0, [$1];", WORDS[0]),
        ("ld.global.nc.L1::no_allocate.b32 $0, [$1 + 4];", 2),
        ("ld.volatile.global.u32 $0, [$1+8];", 3),
        ("ld.global.acquire.gpu.b32 $0, [$1];", WORDS[0]),
        ("ld.relaxed.sys.u32 $0, [$1];", WORDS[0]),
        ("ld.global.u8 $0, [$1];", 0xEF),
        ("ld.global.s8 $0, [$1];", 0xFFFFFFEF),
        ("ld.global.u16 $0, [$1+2];", 0x89AB),
        ("ld.global.s16 $0, [$1+2];", 0xFFFF89AB),
        ("{ .reg .b32 a, b; ld.global.v2.b32 {a, b}, [$1+8]; shl.b32 b, b, 8; or.b32 $0, a, b; }", 0x403),
        ("{ .reg .u64 w; ld.global.u64 w, [$1]; shr.u64 w, w, 32; cvt.u32.u64 $0, w; }", 2),
        ("{ .reg .b16 h; ld.global.cg.b16 h, [$1]; cvt.u32.u16 $0, h; }", 0xCDEF),
        ("{ .reg .pred p; setp.ne.u32 p, 1, 1; mov.b32 $0, 77; @p ld.global.u32 $0, [$1]; }", 77),
        ("{ .reg .pred p; setp.ne.u32 p, 1, 1; mov.b32 $0, 77; @!p ld.global.u32 $0, [$1]; }", WORDS[0]),
    ],
)
def test_loads(text: str, expected: int) -> None:
    (found,), _ = per_thread(lambda t, p: loaded(text, p.toint()), 1, dtype=Uint32, memory=np.array(WORDS, np.uint32))
    assert found == expected


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("st.global.u32 [$0], $1;", {0: 9}),
        ("st.global.release.gpu.b32 [$0 + 4], $1;", {1: 9}),
        ("st.global.wt.v2.u32 [$0+8], {$1, 10};", {2: 9, 3: 10}),
        ("st.global.u8 [$0], $1;", {0: 0x89ABCD09}),
        ("{ .reg .pred p; setp.eq.u32 p, $1, 8; @p st.global.u32 [$0], $1; }", {}),
        ("{ .reg .pred p; setp.eq.u32 p, $1, 8; @!p st.global.u32 [$0], $1; }", {0: 9}),
        ("red.global.add.u32 [$0], $1;", {0: 0x89ABCDF8}),
        ("red.relaxed.gpu.global.max.s32 [$0], $1;", {0: 9}),
        ("red.relaxed.gpu.global.max.u32 [$0], $1;", {}),
        ("red.release.gpu.global.v4.u32.add [$0+16], {$1, $1, 1, 2};", {4: 14, 5: 15, 6: 8, 7: 10}),
        ("{ .reg .u32 old; atom.global.add.u32 old, [$0+4], $1; st.global.u32 [$0+8], old; }", {1: 11, 2: 2}),
        (
            "{ .reg .b32 old; atom.acq_rel.gpu.global.cas.b32 old, [$0+4], 2, $1; st.global.b32 [$0], old; }",
            {1: 9, 0: 2},
        ),
        ("{ .reg .b32 old; atom.global.exch.b32 old, [$0+4], $1; }", {1: 9}),
        ("atom.relaxed.gpu.global.inc.u32 _, [$0+4], $1;", {1: 3}),
        ("st.global.b32 [$0], 0f3F800000;", {0: 0x3F800000}),
        ("st.global.f32 [$0], 1.0;", {0: 0x3F800000}),
        ("st.global.v2.b64 [$0], {0d3FF0000000000000, -1};", {0: 0, 1: 0x3FF00000, 2: 0xFFFFFFFF, 3: 0xFFFFFFFF}),
        ("st.global.s32 [$0+010], 0xfffffffe;", {2: 0xFFFFFFFE}),
        ("st.global.u32 [$0+8], 12U;", {2: 12}),
        ("st.global.u8 [$0+ 0x4], 300;", {1: 44}),
        ("red.global.add.f32 [$0+28], 0f3F800000;", {7: 0x3F800000}),
        ("{ .reg .b32 a; mov.b32 a, 7; { .reg .b32 a; mov.b32 a, 5; } st.global.b32 [$0], a; }", {0: 7}),
    ],
)
def test_stores_and_atomics(text: str, changed: dict[int, int]) -> None:
    memory = np.array(WORDS, np.uint32)
    _, after = per_thread(
        lambda t, p: (asm(None, text, "l,r", p.toint(), Uint32(9)), Uint32(t))[1], 1, dtype=Uint32, memory=memory
    )
    assert list(after) == [changed.get(i, word) for i, word in enumerate(WORDS)]


def test_bytes_before_the_address() -> None:
    def body(t: Any, p: Any) -> Any:
        asm(None, "{ st.global.u32 [$0+-4], $1; st.global.u32 [$0-8], 3; }", "l,r", (p + 3).toint(), Uint32(9))
        return Uint32(t)

    _, after = per_thread(body, 1, dtype=Uint32, memory=np.array(WORDS, np.uint32))
    assert list(after[:4]) == [WORDS[0], 3, 9, WORDS[3]]


def test_numbers_of_floats_keep_their_bits() -> None:
    def body(t: Any, p: Any) -> Any:
        asm(None, "st.global.v2.f32 [$0], {$1, 0f3F800000};", "l,f", p.toint(), Float32(2.5))
        asm(None, "red.global.add.f32 [$0+4], $1;", "l,f", p.toint(), Float32(0.5))
        return Float32(
            asm(
                T.f32(), "{ .reg .f32 a; ld.global.f32 a, [$1]; mul.f32 $0, a, $2; }", "=f,l,f", p.toint(), Float32(3.0)
            )
        )

    (found,), after = per_thread(body, 1, dtype=Float32, memory=np.zeros(2, np.float32))
    assert found == 7.5 and list(after) == [2.5, 1.5]


@cute.jit
def handed_over(t: Any, arrive: Any, wait: Any, store: Any, load: Any) -> Any:
    """What warp 0 stores, warp 1 loads after both met."""
    held = arch.alloc_smem(Int32, 32)
    found = Uint32(0)
    if t < 32:
        asm(None, store, "r,r", Int32((held + t).toint()), t)
        arrive()
    else:
        wait()
        found = loaded(load, Int32((held + (63 - t)).toint()))
    return found


@pytest.mark.parametrize(
    ("arrive", "wait"),
    [
        ("bar.arrive 1, 64;", "bar.sync 1, 64;"),
        ("barrier.cta.arrive.aligned 2, 64;", "barrier.sync.aligned 2, 64;"),
        ("barrier.arrive $0, 64;", "barrier.cta.sync $0, 64;"),
        ("{ membar.cta; bar.arrive 1, 64; }", "{ bar.sync 1, 64; fence.acq_rel.cta; }"),
    ],
)
def test_warps_meet(arrive: str, wait: str) -> None:
    def meets(text: str) -> Any:
        return lambda: asm(None, text, "r" if "$" in text else "", *([Int32(3)] if "$" in text else []))

    with sim.options(check="all"):
        found = per_thread(
            lambda t: handed_over(t, meets(arrive), meets(wait), "st.shared.s32 [$0], $1;", "ld.shared.u32 $0, [$1];"),
            64,
        )
    assert found[32:] == list(range(31, -1, -1))


def test_what_is_not_ordered_is_found() -> None:
    with sim.options(check="all"), pytest.raises(TilewrightError, match="race"):
        per_thread(
            lambda t: handed_over(
                t, lambda: None, lambda: None, "st.shared::cta.b32 [$0], $1;", "ld.shared.b32 $0, [$1];"
            ),
            64,
        )


@pytest.mark.parametrize("word, races", [("release", False), ("relaxed", True)])
def test_a_relaxed_arrival_orders_nothing(word: str, races: bool) -> None:
    def body(t: Any, p: Any) -> Any:
        bar, data = arch.alloc_smem(Int64, 1, 8), arch.alloc_smem(Int32, 64)
        if t == 0:
            arch.mbarrier_init(bar, 64)
            arch.mbarrier_init_fence()
        arch.sync_threads()
        (data + t).store(t)
        asm(None, f"mbarrier.arrive.{word}.cta.shared::cta.b64 _, [$0];", "r", Int32(bar.toint()))
        arch.mbarrier_wait(bar, 0)
        return (data + (63 - t)).load()

    if races:
        with pytest.raises(TilewrightError, match="data race"):
            per_thread(cute.jit(body), 64, memory=[0])
    else:
        assert per_thread(cute.jit(body), 64, memory=[0])[0][:2] == [63, 62]


def test_an_mbarrier() -> None:
    def body(t: Any, p: Any) -> Any:
        bar = arch.alloc_smem(Int64, 1, 8)
        place = Int32(bar.toint())
        if t == 0:
            asm(None, "{ mbarrier.init.shared::cta.b64 [$0], 32; fence.mbarrier_init.release.cluster; }", "r", place)
        asm(None, "barrier.sync 0;", "")
        done = (
            "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [$1], 0; selp.b32 $0, 1, 0, p; }"
        )
        early = loaded(done, place)
        asm(None, "bar.warp.sync 0xffffffff;", "")
        asm(None, "mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", "r", place)
        asm(None, "bar.sync 0;", "")
        return early * 10 + loaded(done, place)

    assert per_thread(cute.jit(body), 32, memory=[0])[0] == [1] * 32


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.L2::cache_hint.u32 $0, [$1], $1;",  # another operand
        "ld.global.v2.u32 $0, [$1];",  # one register for two
        "{ .reg .u64 a; add.u64 a, $1, 4; ld.global.u32 $0, [a]; }",  # an address that the text makes
        "ld.shared.u32 $0, [$1];",  # of another memory
        "atom.global.add.u32 $0, [$1];",
        "ld.global.u32 $0, [$1+word];",
        "{ st.global.u32 [$1], %laneid; mov.b32 $0, 1; }",
        "{ st.global.b32 [$1], 0d3FF0000000000000; mov.b32 $0, 1; }",
        "{ ld.global.u32 $0, [$1]; unknown.b32 $0, $0; }",
    ],
)
def test_what_cannot_be_followed_stays_ptx(text: str) -> None:
    with pytest.raises(TilewrightError, match="the simulator does not know"):
        per_thread(lambda t, p: loaded(text, p.toint()), 1, dtype=Uint32, memory=np.array(WORDS, np.uint32))


# -- matrices ----------------------------------------------------------------------------------------------------------

PRODUCT = """{
    .reg .b32 a<4>; .reg .b32 b<2>;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, [$4];
    ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {b0, b1}, [$5];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {a0, a1, a2, a3}, {b0, b1}, {$6, $7, $8, $9};
}"""


def by_inline_ptx(copy: str = "cp.async.cg.shared.global [$0], [$1], 16;", waits: bool = True) -> Any:
    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor):
        t, _, _ = arch.thread_idx()
        s_a, s_b = (arch.alloc_smem(Float16, n, 16) for n in (256, 128))
        asm(
            None, copy, "r,l", Int32((s_a + 8 * t).toint()), (a.iterator + 8 * t).toint()
        )  # two pieces of 16 bytes a row
        if t < 16:
            asm(None, copy, "r,l", Int32((s_b + 8 * t).toint()), (b.iterator + 8 * t).toint())
        arch.inline_ptx("cp.async.commit_group;")
        if const_expr(waits):
            arch.inline_ptx("cp.async.wait_group 0;")
        arch.sync_threads()
        row_a, row_b = s_a + 16 * (t % 16) + 8 * (t // 16), s_b + 16 * (t % 8) + 8 * (t // 8 % 2)
        operands = [row_a.toint().ir_value(), row_b.toint().ir_value(), *(Float32(1).ir_value() for _ in range(4))]
        kind = llvm.StructType.get_literal([T.f32()] * 4)
        found = llvm.inline_asm(kind, operands, PRODUCT, "=f,=f,=f,=f,r,r,f,f,f,f", has_side_effects=True)
        for i in range_constexpr(4):
            d[t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2] = Float32(llvm.extractvalue(T.f32(), found, [i]))

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor):
        kernel(a, b, d).launch(grid=(1, 1, 1), block=(32, 1, 1))

    draw = np.random.default_rng(0)
    a, b = (draw.integers(-3, 4, (n, 16)).astype(np.float16) for n in (16, 8))
    d = np.zeros((16, 8), np.float32)
    host(*(cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)), d)
    return d - a.astype(np.float32) @ b.T.astype(np.float32)


@pytest.mark.parametrize("size", ["16", "16, 16", "16, 0x10"])
def test_a_product_of_matrices_in_inline_ptx(size: str) -> None:
    assert (by_inline_ptx(f"cp.async.cg.shared::cta.global.L2::128B [$0], [$1], {size};") == 1).all()


def test_a_copy_that_is_not_waited_for_is_seen() -> None:
    with pytest.raises(TilewrightError, match="cp.async"):
        by_inline_ptx(waits=False)


def test_a_copy_that_fills_in_zeros_stays_inline_ptx() -> None:
    with pytest.raises(TilewrightError, match="does not know cp.async"):
        by_inline_ptx("cp.async.cg.shared.global [$0], [$1], 16, 8;")


def test_stored_matrices() -> None:
    @cute.jit
    def body(t: Any) -> Any:
        tile = arch.alloc_smem(Uint32, 32, 16)
        text = "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [$0], {$1};"
        asm(None, text, "r,r", Int32((tile + 4 * (t % 8)).toint()), Uint32(t * 2 + (t * 2 + 1) * 65536))
        arch.sync_warp()
        return Uint32(arch.load(tile + t))

    cells = np.array(per_thread(body, 32, dtype=Uint32), np.uint32).view(np.uint16).reshape(8, 8)
    assert (cells == np.arange(64).reshape(8, 8).T).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1}, [$0];", "ldmatrix of x4 takes 4 registers, not 2"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [$0], {a0, a1};", "stmatrix of x1 takes 1 registers, not 2"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a0, a1}, {a0, a1}, {a0, a1}, {a0, a1};",
            "takes D, A, B and C in 4, 4, 2, 4 registers, not operands of 2, 2, 2, 2",
        ),
    ],
)
def test_matrices_in_too_few_registers(text: str, message: str) -> None:
    def body(t: Any) -> Any:
        tile = arch.alloc_smem(Uint32, 32, 16)
        asm(None, f"{{ .reg .b32 a<2>; mov.b32 a0, 0; mov.b32 a1, 0; {text} }}", "r", Int32(tile.toint()))
        return t

    with pytest.raises(TilewrightError, match=message):
        per_thread(body, 32)


@pytest.mark.parametrize("inside", [False, True])
def test_a_chain_of_carries_is_not_parted(inside: bool) -> None:
    """The store is an operation of its own only where no carry has to outlast it."""
    store, chain = "st.shared.b32 [$0], x;", ["add.cc.u32 x, $1, $1;", "addc.u32 x, 0, 0;"]
    text = " ".join([chain[0], store, chain[1]] if inside else [*chain, store])

    def body(t: Any) -> Any:
        place = arch.alloc_smem(Uint32, 1)
        asm(None, f"{{ .reg .b32 x; {text} }}", "r,r", Int32(place.toint()), Uint32(0x80000001))
        return Uint32(arch.load(place))

    if not inside:
        assert per_thread(body, 1) == [1]
    else:
        with pytest.raises(TilewrightError, match="does not know st.shared.b32"):
            per_thread(body, 1)
