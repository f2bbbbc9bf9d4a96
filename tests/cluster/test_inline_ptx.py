"""``mapa`` and ``st.async`` as inline PTX: the instructions of the language, with all that is checked of them."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import Float32, Int32, Int64, Uint32, cute
from tilewright._mlir.dialects import llvm
from tilewright.cute import arch
from tilewright.cutlass_dsl import T
from tilewright.errors import ConstraintError, TilewrightError
from tilewright.testing import per_thread

STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes."


def by_mapa(pointer: Any, rank: Any) -> Any:
    operands = [pointer.toint().ir_value(), Int32(rank).ir_value()]
    return Int32(llvm.inline_asm(T.i32(), operands, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r"))


def by_pointer(pointer: Any, rank: Any) -> Any:
    return Int32(arch.map_dsmem_ptr(pointer, rank).toint())


def asm(suffix: str, letter: str, to: Any, value: Any, bar: Any) -> None:
    operands = [to.ir_value(), value.ir_value(), bar.ir_value()]
    llvm.inline_asm(None, operands, f"{STORE}{suffix} [$0], $1, [$2];", f"r,{letter},r", has_side_effects=True)


def ptx(suffix: str, letter: str, to: Any, value: Any, bar: Any) -> None:
    arch.inline_ptx(f"{STORE}{suffix} [{{$r0}}], {{$r1}}, [{{$r2}}];", read_only_args=[to, value, bar])


def exchange(mapped: Any, store: Any, dtype: Any, suffix: str, letter: str, expected: int = 0) -> Any:
    @cute.jit
    def body(t: Any) -> Any:
        own = arch.block_idx_in_cluster()
        buffer, bar = arch.alloc_smem(dtype, 32), arch.alloc_smem(Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_arrive_and_expect_tx(bar, expected or 32 * dtype.width // 8)
        arch.mbarrier_init_fence()
        arch.cluster_arrive()
        arch.cluster_wait()
        other = own ^ 1
        store(suffix, letter, mapped(buffer + t, other), dtype(100 * own + t), mapped(bar, other))
        arch.mbarrier_wait(bar, 0)
        return Int32(arch.load(buffer + t))

    return per_thread(body, 32, blocks=2, cluster=2)


@pytest.mark.parametrize("mapped", [by_mapa, by_pointer])
@pytest.mark.parametrize("store", [asm, ptx])
@pytest.mark.parametrize(
    ("dtype", "suffix", "letter"),
    [(Int32, "s32", "r"), (Uint32, "b32", "r"), (Float32, "f32", "f"), (Int64, "s64", "l")],
)
def test_numbers_reach_the_other_block(mapped: Any, store: Any, dtype: Any, suffix: str, letter: str) -> None:
    assert exchange(mapped, store, dtype, suffix, letter) == [*range(100, 132), *range(32)]


def test_bytes_that_never_come_are_waited_for() -> None:
    with pytest.raises(TilewrightError, match="mbarrier"):
        exchange(by_mapa, asm, Int32, "s32", "r", expected=132)


def test_an_address_of_another_origin_stays_inline_ptx() -> None:
    with pytest.raises(TilewrightError, match="does not know st.async"):
        exchange(lambda pointer, rank: pointer.toint(), asm, Int32, "s32", "r")


def test_two_ranks_stay_inline_ptx() -> None:
    with pytest.raises(TilewrightError, match="does not know"):
        exchange(lambda pointer, rank: by_mapa(pointer, rank if pointer.dtype is Int32 else 0), asm, Int32, "s32", "r")


@pytest.mark.parametrize("form", [asm, ptx])
@pytest.mark.parametrize(("dtype", "suffix", "letter"), [(Int32, "s32", "r"), (Float32, "f32", "f")])
def test_four_numbers_at_once(form: Any, dtype: Any, suffix: str, letter: str) -> None:
    moves = "".join(f"mov.{suffix} abcd.{c}, {{}}{2 + i}{{}};\n\t" for i, c in enumerate("xyzw"))
    text = f"{{{{\n\t.reg .v4 .{suffix} abcd;\n\t{moves}{STORE}v4.{suffix} [{{}}0{{}}], abcd, [{{}}1{{}}];\n\t}}}}\n"

    def store(suffix: str, letter: str, to: Any, value: Any, bar: Any) -> None:
        given = [to, bar, *(dtype(value + i) for i in range(4))]
        if form is ptx:
            arch.inline_ptx(text.format(*["{$r", "}"] * 6), read_only_args=given)
        else:
            letters = ",".join("rr" + 4 * letter)
            llvm.inline_asm(
                None, [x.ir_value() for x in given], text.format(*["$", ""] * 6), letters, has_side_effects=True
            )

    @cute.jit
    def body(t: Any) -> Any:
        own = arch.block_idx_in_cluster()
        buffer, bar = arch.alloc_smem(dtype, 128, 16), arch.alloc_smem(Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_arrive_and_expect_tx(bar, 512)
        arch.mbarrier_init_fence()
        arch.cluster_arrive()
        arch.cluster_wait()
        other = own ^ 1
        store(suffix, letter, by_mapa(buffer + 4 * t, other), dtype(1000 * own + 4 * t), by_mapa(bar, other))
        arch.mbarrier_wait(bar, 0)
        return Int32(arch.load(buffer + 4 * t + 3))

    assert per_thread(body, 32, blocks=2, cluster=2) == [*range(1003, 1131, 4), *range(3, 131, 4)]


def test_inline_ptx_refuses_operands_that_are_not_given_and_non_registers() -> None:
    with pytest.raises(ConstraintError, match=r"\{\$w0\} is not there: write_only_types has 0"):
        per_thread(lambda t: arch.inline_ptx("mov.u32 {$w0}, {$r0};", read_only_args=[t]), 1)
    with pytest.raises(ConstraintError, match=r"\{\$r1\} is not there: read_only_args has 1"):
        per_thread(lambda t: arch.inline_ptx("nanosleep.u32 {$r1};", read_only_args=[t]), 1)
    with pytest.raises(ConstraintError, match="fits no register"):
        per_thread(lambda t: arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[t > 0]), 1)


BULK = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $3, [$2];"


def by_bulk_copy(expected: int = 128, fenced: bool = True, rank_of_bar: Any = None, size: Any = 128) -> Any:
    @cute.jit
    def body(t: Any) -> Any:
        own = arch.block_idx_in_cluster()
        sent, came = (arch.alloc_smem(Int32, 32, 16) for _ in range(2))
        bar = arch.alloc_smem(Int64, 1, 8)
        cute.make_tensor(sent, 32)[t] = 100 * own + t
        if fenced:
            arch.fence_proxy("async.shared", space="cta")
        if t == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_arrive_and_expect_tx(bar, expected)
        arch.mbarrier_init_fence()
        arch.cluster_arrive()
        arch.cluster_wait()
        other = own ^ 1
        if t == 0:
            barrier = by_mapa(bar, other if rank_of_bar is None else rank_of_bar)
            places = [by_mapa(came, other), Int32(sent.toint()), barrier, Int32(size)]
            llvm.inline_asm(None, [x.ir_value() for x in places], BULK, "r,r,r,r", has_side_effects=True)
        arch.mbarrier_wait(bar, 0)
        arch.cluster_arrive()
        arch.cluster_wait()  # the own copy has left
        return Int32(arch.load(came + t))

    return per_thread(body, 32, blocks=2, cluster=2)


def test_a_bulk_copy_reaches_the_other_block() -> None:
    assert by_bulk_copy() == [*range(100, 132), *range(32)]


def test_a_bulk_copy_reads_by_the_async_proxy() -> None:
    with pytest.raises(TilewrightError, match="proxy-fence"):
        by_bulk_copy(fenced=False)


def test_bytes_of_a_bulk_copy_are_counted() -> None:
    with pytest.raises(TilewrightError, match="mbarrier"):
        by_bulk_copy(expected=64)


def test_a_bulk_copy_to_two_blocks_stays_inline_ptx() -> None:
    with pytest.raises(TilewrightError, match="does not know mapa"):
        by_bulk_copy(rank_of_bar=0)


def test_a_bulk_copy_of_a_wrong_size_is_refused() -> None:
    with pytest.raises(ConstraintError, match="multiple of 16 bytes, not 120"):
        by_bulk_copy(size=120)
