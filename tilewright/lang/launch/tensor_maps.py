"""Whether the tensor maps of a launch are made for the TMA copies of the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.atoms.tma import TmaCopy
from tilewright.errors import ConstraintError
from tilewright.ir.core import Function, Value
from tilewright.ir.tensormap import TENSOR_MAP, TensorMapTemplate


def check_tensor_maps(function: Function, values: Sequence[Value]) -> None:
    """ConstraintError for a copy of another mode or rank than its tensor map, and for what such a copy does not have:
    the GPU would stop with an illegal instruction. ``values``: those that the kernel ``function`` is launched with.
    In the simulator, tensor maps in memory are checked when they are used."""
    maps: dict[Value, TensorMapTemplate] = {
        param: value.op.attrs["template"]
        for param, value in zip(function.params, values, strict=True)
        if value.type == TENSOR_MAP and value.op is not None and value.op.opcode == "tensormap"
    }
    for op in function.walk() if maps else ():
        copy = op.attrs.get("atom")
        if isinstance(copy, TmaCopy) and op.operands[0] in maps:
            made = maps[op.operands[0]]
            problem, fix = copy.misfit(made)
            if problem:
                where = f" at {op.loc}" if op.loc else ""
                raise ConstraintError(f"{copy.mnemonic()}{where}: {problem} ({made.name}): {fix}")
