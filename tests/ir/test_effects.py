"""Every instruction states its facts, and they agree with what it does."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import tilewright.atoms
from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore
from tilewright.atoms.bulk import BulkWait
from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.sync import Fence
from tilewright.atoms.wgmma_names import parse_wgmma
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Instruction
from tilewright.ir.types import MemSpace
from tilewright.layout import size


def kinds(of: type[Instruction] = Instruction) -> Iterator[type[Instruction]]:
    for found in of.__subclasses__():
        yield found
        yield from kinds(found)


def own(kind: type[Instruction]) -> set[str]:
    """What the class or a base below ``Instruction`` defines."""
    return {name for base in kind.__mro__[: kind.__mro__.index(Instruction)] for name in vars(base)}


for module in pkgutil.walk_packages(tilewright.atoms.__path__, "tilewright.atoms."):
    importlib.import_module(module.name)
SHIPPED = sorted(
    (kind for kind in kinds() if kind.__module__.startswith("tilewright.atoms") and "name" in own(kind)),
    key=lambda kind: (kind.__module__, kind.__qualname__),  # not in the order in which modules were imported
)


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_every_instruction_states_what_it_reads_and_writes(kind: type[Instruction]) -> None:
    assert "accesses" in own(kind), f"{kind.__name__} must state its accesses: () where it touches no memory"


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_quiet_instructions_write_nothing_and_start_nothing(kind: type[Instruction]) -> None:
    accesses = inspect.getattr_static(kind, "accesses")
    if kind.pure:
        assert kind.quiet and accesses == ()
    if kind.quiet and isinstance(accesses, tuple):
        assert not any(access.writes or access.agent for access in accesses)


INSTRUCTIONS: list[Any] = [
    *dict.fromkeys(COPIES.values()),
    *MMA_SYNC.values(),
    *FMA.values(),
    parse_wgmma("SM90_64x64x16_F32F16F16_SS<K,K>"),
]


@pytest.mark.parametrize("atom", INSTRUCTIONS, ids=str)
def test_sides_of_copies_and_operands_of_mmas(atom: Any) -> None:
    if isinstance(atom, CopyInstruction):
        assert [a.role for a in atom.accesses] == ["source", "destination"]
        assert atom.source.does == "read" and atom.destination.does == "write"
        for access, bits in ((atom.source, atom.src_bits), (atom.destination, atom.dst_bits)):
            if not atom.auto:
                assert access.bits == size(bits[1])
    else:
        assert [(a.role, a.does, a.operand) for a in atom.accesses] == [
            ("D", "update", 0),
            ("A", "read", 1),
            ("B", "read", 2),
        ]
        assert atom.accesses[0].spaces == (MemSpace.RMEM,)


def test_alignment_follows_from_the_width() -> None:
    assert [COPIES[f"UniversalCopy<uint{bits}_t>"].source.align for bits in (8, 32, 128)] == [1, 4, 16]
    assert [COPIES[f"SM75_U32x{n}_LDSM_N"].source.align for n in (1, 4)] == [16, 16]
    assert [COPIES[f"SM75_U32x{n}_LDSM_N"].source.lanes for n in (1, 2, 4)] == [8, 16, 32]
    assert COPIES["SM90_U32x4_STSM_N"].source.registers and not COPIES["SM90_U32x4_STSM_N"].destination.registers


def test_memory_order_of_atomics_and_fences() -> None:
    (found,) = Atomic("add", "acq_rel", "sys").accesses
    assert (found.does, found.order, found.scope) == ("update", "acq_rel", "sys")
    assert OrderedLoad("acquire", "cta").accesses[0].order == "acquire"
    assert OrderedStore("release", "gpu").accesses[0].writes
    assert Fence("sys").orders == (Ordering("sys", acquire=True, release=True),)


def test_facts_are_spelled_right() -> None:
    with pytest.raises(ValueError, match="no scope 'block'"):
        Ordering("block")
    with pytest.raises(ValueError, match="no memory order 'strong'"):
        Access("read", "source", (), order="strong")
    with pytest.raises(ValueError, match="no access 'load'"):
        Access("load", "source", ())


ORDERING = [kind for kind in SHIPPED if isinstance(inspect.getattr_static(kind, "orders"), tuple) and kind.orders]


@pytest.mark.parametrize(
    "instruction", [BulkWait(0), BulkWait(0, read=True), *map(object.__new__, ORDERING)], ids=lambda x: type(x).__name__
)
def test_an_order_is_asked_for_by_its_meeting_place_and_agent(instruction: Any) -> None:
    assert instruction.orders
    for order in instruction.orders:
        found = instruction.orders_through(order.through, order.agent)
        assert (found.through, found.agent) == (order.through, order.agent)
        assert instruction.orders_through(order.through, "another agent") is None
        assert instruction.orders_through("another place", order.agent) is None
