"""TMA copies of four rows of a matrix that need not be neighbours: the modes ``tile::gather4`` and ``tile::scatter4``
of ``cp.async.bulk.tensor`` (PTX ISA, "tile::scatter4 and tile::gather4 modes").

The tensor map has two modes and a box of one row. The coordinates are that of the column, then those of four rows,
which are neighbours in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.tensor_memory_alloc import TmemRelinquish
from tilewright.atoms.tma import TmaLoad, TmaStore
from tilewright.atoms.tma_engine import LoadEngine, StoreEngine
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.target import Architecture
from tilewright.ir.tensormap import CopiedMap

COORDINATES = 5


def other_than_rows(tensor_map: CopiedMap) -> tuple[str, str]:
    """Why the tensor map is not one of rows of a matrix, and what to do; empty where it is."""
    if tensor_map.im2col is not None:
        return "the tensor map is for im2col copies", "make a tensor map of a matrix, with a box of one row"
    if tensor_map.rank != 2 or tensor_map.box[1] != 1:
        box = f", {tensor_map.box[1]} rows in a box" if tensor_map.rank > 1 else ""
        problem = (
            f"the tensor map has {tensor_map.rank} modes{box}, and the copy is of four boxes of one row of a matrix"
        )
        return problem, "make a tensor map for this copy"
    return "", ""


def check_coordinates(what: str, op: Op, rank: int) -> None:
    """ConstraintError for another number than a column's and four rows'."""
    if rank != COORDINATES:
        where = f" at {op.loc}" if op.loc else ""
        raise ConstraintError(f"{what} takes {COORDINATES} coordinates, a column and four rows, not {rank}{where}")


@dataclass(frozen=True, repr=False)
class TmaGather(TmaLoad):
    """Four rows of a matrix to shared memory. Without ``multicast`` and ``pair`` sm_120 has it, too."""

    min_arch = 100
    rows = True

    @property
    def cute_name(self) -> str:
        return super().cute_name.replace("SM90", "SM100") + "_GATHER4"

    def mnemonic(self) -> str:
        kind = (".pair" if self.pair else "") + (".multicast" if self.multicast else "")
        return f"tma.gather4{kind}{'.hint' if self.hint else ''}"

    def verify(self, op: Op) -> None:
        check_coordinates(self.mnemonic(), op, self.rank)
        super().verify(op)

    def other_mode(self, tensor_map: CopiedMap) -> tuple[str, str]:
        return other_than_rows(tensor_map)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        if self.multicast or self.pair:
            return TmemRelinquish().lacking(arch)
        return super().lacking(arch, op)

    def form(self) -> str:
        cast, mask = (".multicast::cluster", ", {mask}") if self.multicast else ("", "")
        pair = ".cta_group::2" if self.pair else ""
        space = "cluster" if self.multicast or self.pair else "cta"
        return (
            f"cp.async.bulk.tensor.2d.shared::{space}.global.tile::gather4.mbarrier::complete_tx::bytes{cast}{pair}"
            f"{{hint}} [{{smem}}], {{box}}, [{{mbarrier}}]{mask}"
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, shared, copies = self.parts(operands)
        engine = LoadEngine(lanes, self, tensor_map, op.operands[0].type)
        engine.load(copies, shared[0], shared[1] if self.multicast else None, self.pair)
        return ()


@dataclass(frozen=True, repr=False)
class TmaScatter(TmaStore):
    """Four rows of shared memory to rows of a matrix, in a bulk group."""

    min_arch = 100
    rows = True

    def __post_init__(self) -> None:
        if self.reduction:
            raise ConstraintError(f"tile::scatter4 only stores: there is no reduction, {self.reduction!r}")

    @property
    def cute_name(self) -> str:
        return "SM100_TMA_STORE_SCATTER4"

    def mnemonic(self) -> str:
        return f"tma.scatter4{'.hint' if self.hint else ''}"

    def verify(self, op: Op) -> None:
        check_coordinates(self.mnemonic(), op, self.rank)
        super().verify(op)

    def other_mode(self, tensor_map: CopiedMap) -> tuple[str, str]:
        return other_than_rows(tensor_map)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        return TmemRelinquish().lacking(arch)

    def form(self) -> str:
        return "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group{hint} {box}, [{smem}]"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, _, copies = self.parts(operands)
        engine = StoreEngine(lanes, self, tensor_map, op.operands[0].type)
        engine.store(copies, self.reduction)
        return ()
