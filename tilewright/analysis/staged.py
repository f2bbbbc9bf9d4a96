"""The instructions that ``cute.copy`` makes of a tiled copy: found out by staging it, not by a second set of rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.analysis.memory import MemoryTile, span_bytes, with_leaves
from tilewright.atoms.copy import CopyInstruction, repetitions
from tilewright.ir.core import Block, Op, Value
from tilewright.ir.types import I32, FragType, MemSpace, PtrType
from tilewright.lang.device.threads import thread_idx
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import class_of, wrap
from tilewright.lang.staging.builder import StagingBuilder
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import make_layout
from tilewright.tiled.staged_copy import copy
from tilewright.tiled.tiled_copy import TiledCopy


@dataclass(frozen=True)
class Issue:
    """One kind of instruction of a copy. ``values`` names, for each repetition, the values of the thread's partition
    that it accesses on the side ``side``: ``"source"`` or ``"destination"``."""

    instruction: CopyInstruction
    side: str
    values: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Staged:
    """``calls`` are (instruction, repetitions); ``register_bits`` is what passes through registers of one thread."""

    calls: tuple[tuple[CopyInstruction, int], ...]
    issues: tuple[Issue, ...]
    register_bits: int


def stage_copy(tiled: TiledCopy, source: MemoryTile | None, destination: MemoryTile | None) -> Staged:
    """Stage ``cute.copy`` of one thread's partitions. None stands for registers with the partition's own layout."""
    block = Block()
    builder: Any = StagingBuilder(block)
    builder.block_shape = (tiled.size, 1, 1)
    shape = (source or destination).layout.shape  # type: ignore[union-attr]  # one of both is there
    with builder.activate():
        tidx, _, _ = thread_idx()
        thread = tiled.get_slice(tidx)
        sides = []
        for memory, part in ((source, thread.partition_S), (destination, thread.partition_D)):
            if memory is not None:
                sides.append(part(_tensor(block, tiled, memory)))
            else:
                registers, _ = getattr(tiled.get_slice(0), part.__name__)(make_layout(shape))
                sides.append(make_rmem_tensor(make_layout(registers.shape), class_of(tiled.scalar)))
        copy(tiled, *sides)
    ops = [op for op in block.walk() if op.opcode == "call" and op.attrs["atom"].copies]
    issues = tuple(issue for op in ops for issue in _issues(op, tiled))
    return Staged(tuple((op.attrs["atom"], repetitions(op)) for op in ops), issues, _through_registers(ops, tiled))


def _tensor(block: Block, tiled: TiledCopy, memory: MemoryTile) -> Tensor:
    """A tensor over a pointer parameter; strides known only at run time become parameters with the same divisor."""

    def parameter(leaf: Any) -> Any:
        block.args.append(Value(I32, str(leaf)))
        return wrap(block.args[-1], Facts(True, leaf.divisibility, None))

    align = memory.align
    if memory.space == MemSpace.SMEM:
        align = max(align, span_bytes(memory.layout, tiled.scalar.bytes))
    block.args.append(Value(PtrType(tiled.scalar, memory.space, align), memory.space.value))
    pointer = Pointer(block.args[-1], class_of(tiled.scalar))
    return make_tensor(pointer, with_leaves(memory.layout, parameter))


def _issues(op: Op, tiled: TiledCopy) -> list[Issue]:
    atom = op.attrs["atom"]
    if "registers" not in op.attrs:
        values = _consecutive(repetitions(op), tiled.num_val_src)
        return [Issue(atom, "source", values), Issue(atom, "destination", values)]
    side = "destination" if op.attrs["store"] else "source"
    if atom.exchanges:  # a lane's row is in memory, its registers hold parts of other lanes' rows
        per_lane = tiled.num_val_dst if op.attrs["store"] else tiled.num_val_src
        return [Issue(atom, side, _consecutive(repetitions(op), per_lane))]
    # The fragment is compact, so that its registers are numbered as the values of the partition.
    return [Issue(atom, side, op.attrs["registers"])]


def _consecutive(count: int, values: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(range(r * values, (r + 1) * values)) for r in range(count))


def _through_registers(ops: list[Op], tiled: TiledCopy) -> int:
    """A copy between memories passes each value through a register once, unless it is asynchronous."""
    bits = {"load": 0, "store": 0, "both": 0}
    for op in ops:
        if "registers" in op.attrs:
            assert isinstance(op.operands[0].type, FragType)
            moved = sum(map(len, op.attrs["registers"])) * 8 * op.operands[0].type.elem.bytes
            bits["store" if op.attrs["store"] else "load"] += moved
        elif not op.attrs["atom"].source.agent:
            bits["both"] += repetitions(op) * tiled.num_val_src * 8 * tiled.scalar.bytes
    return max(bits.values())
