"""Groups of which each has a place for as many rows as any may have, and a count on the device of those that it has:
what a router writes that does not sort (the masked form of DeepGEMM). They are groups of one tall matrix, as those that
offsets cut, whose begins are known: group i begins at row i * ``every``."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.arrays import framework, namespace, view_of


class TallGroups(NamedTuple):
    """The matrices of all groups below each other. ``every``: the rows of one; ``shape``: the result's."""

    a: Any
    out: Any
    every: int
    shape: tuple[int, int, int]


def tall_groups(a: Any, b: Any, counts: Any, out: Any, offsets: Any, beside: dict[str, Any]) -> TallGroups:
    """The groups of a (G, M, K) and b (G, K, N), of which counts (G,) has the rows. ArgumentError where they do not
    fit, and for arguments ``beside`` them that only groups cut by offsets have."""
    if offsets is not None:
        raise ArgumentError("counts and offsets: groups have one of them")
    for name, x in beside.items():
        if x is not None:
            raise ArgumentError(f"{name} is for groups that offsets cut, not for those with counts")
    if framework(a, "a") == "jax":
        raise ArgumentError("counts are not of JAX, whose arrays are immutable: sort the rows, and give offsets")
    framework(counts, "counts")
    if len(a.shape) != 3 or len(b.shape) != 3 or a.shape[0] != b.shape[0] or tuple(counts.shape) != (a.shape[0],):
        raise ArgumentError(
            f"groups with counts are (G, M, K) times (G, K, N), with G counts; not {tuple(a.shape)} times "
            f"{tuple(b.shape)} with counts of shape {tuple(counts.shape)}"
        )
    groups, rows, k = a.shape
    shape = groups, rows, b.shape[2]
    tall = groups * rows, shape[2]
    if out is not None:
        framework(out, "out")
        if tuple(out.shape) != shape:
            raise ArgumentError(f"out must have the shape of the result, {tuple(shape)}, not {tuple(out.shape)}")
        out = view_of(out, tall) if len(out.shape) == 3 else None
        if out is None:
            raise ArgumentError(
                "the matrices of out do not follow each other as rows of one matrix: give one that has them so"
            )
    return TallGroups(a.reshape(groups * rows, k), out, rows, shape)


def tall_scale(name: str, scale: Any, shape: tuple[int, ...]) -> Any:
    """A scale with a mode of groups before that of rows, with both as one."""
    framework(scale, name)
    if tuple(scale.shape[:2]) != tuple(shape[:2]) or len(scale.shape) > 3:
        raise ArgumentError(
            f"{name} has the shape {tuple(scale.shape)}; with counts its first modes are {tuple(shape[:2])}"
        )
    return scale.reshape(scale.shape[0] * scale.shape[1], *scale.shape[2:])


def counted_rows(counts: Any, every: int) -> Any:
    """Which of the rows of all groups are within the counts, (rows, 1)."""
    of_device = {"device": counts.device} if framework(counts) == "torch" else {}
    return (namespace(counts).arange(every, **of_device) < counts[:, None]).reshape(-1, 1)


def clear_counted(result: Any, counts: Any, every: int) -> None:
    """Zeros in the rows within the counts."""
    if framework(result) == "torch":
        result.masked_fill_(counted_rows(counts, every), 0)
    else:
        result[counted_rows(counts, every)[:, 0]] = 0
