"""Tables of parameters for functions whose docstrings speak of them in sentences.

mkdocstrings makes a table of a section ``Args:``, with the types and defaults of the signature. Most docstrings say
what a parameter is where it matters, in a sentence with its name; that sentence is the row of the table. What many
functions share stands in ``COMMON``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SECTION = re.compile(r"^(Args|Parameters|Attributes):$", re.MULTILINE)
END = re.compile(r"^(?:>>> |\w+:$|```)", re.MULTILINE)  # where the sentences of a docstring end
LEFT_OUT = ("self", "cls", "loc", "ip", "unknown", "other")  # the last two catch what a message names

COMMON = {
    "assumed_align": "bytes that the address is a multiple of; by default those of an element",
    "atom": "the instruction, or a tiled operation made of it",
    "cache_policy": "a member EVICT_NORMAL, EVICT_FIRST or EVICT_LAST of an enumeration, or the 64 bits of a policy",
    "calc_func": "the operation of nvvm",
    "cmp": "the value that is expected",
    "coord": "a coordinate; None keeps a mode",
    "dst": "where the values go",
    "dtype": "the type of an element",
    "element_bits": "bits of an element",
    "fill_value": "the value of every element",
    "force_tf32": "read float32 as TFloat32",
    "ftz": "flush subnormal numbers to zero",
    "index": "the number of the thread or tile",
    "kernel": "a kernel's name, or its entry; by default the one that is chosen",
    "layout": "a layout",
    "input": "the tensor, layout or tree that is taken",
    "lay": "the layout of the cluster's blocks",
    "layouts": "the modes' layouts",
    "mask": "a bit for each lane that takes part",
    "mask_and_clamp": "PTX's operand c: 31 (0 of ``up``), unless lanes are subdivided",
    "mbar_ptr": "an mbarrier: a pointer to Int64 in shared memory",
    "mem_space": "the memory that the address is in",
    "memspace": "the memory that the tensor is in",
    "mode": "the modes that are meant; by default all",
    "pred": "a Boolean for each copy: whether it is made",
    "proj": "1 for the modes that this tensor has, None for the others",
    "ptr": "the address",
    "rnd": "the rounding mode",
    "src_a": "two Float32, as a pair",
    "src_b": "two Float32, as a pair",
    "src_c": "two Float32, as a pair",
    "scope": "who sees it: cta, cluster, gpu or sys",
    "sem": "the memory order: relaxed, acquire, release or acq_rel",
    "shape": "a shape, which may be nested",
    "shape_mnk": "extents along M, N and K",
    "smem_ptr": "an address in shared memory",
    "src": "where the values come from",
    "stream": "the CUDA stream; by default the current one",
    "stride": "a stride of the shape's profile",
    "swizzle": "a swizzle of byte addresses, or None",
    "swizzle_": "a swizzle of byte addresses, or None",
    "target": "the tensor or layout that is cut",
    "thr_idx": "the thread's number",
    "tma_desc_ptr": "a tensor map in memory, in place of the atom's own",
    "tiled_copy": "a tiled copy",
    "threads_in_group": "lanes of a group: 1, 2, 4, 8, 16 or 32",
    "tiled_mma": "a tiled MMA",
    "tiler": "the tile: extents, a shape or layouts by mode",
    "trg_shape": "the shape that results",
    "up_to_rank": "the rank that results",
    "val": "the value",
    "value": "the value",
    "vector": "elements of one access",
    "who": "what a message calls it",
}


def with_table(docstring: str, names: Sequence[str]) -> str:
    """The docstring with a section ``Args:``, if it has none and its sentences say what two parameters are.

    >>> print(with_table("Adds.\\n\\n``a`` is a number; ``b``: another one. Raises nothing.", ["a", "b"]))
    Adds.
    <BLANKLINE>
    ``a`` is a number; ``b``: another one. Raises nothing.
    <BLANKLINE>
    Args:
        a: ``a`` is a number
        b: another one
    """
    names = [name for name in names if name.lstrip("*") not in LEFT_OUT]
    if SECTION.search(docstring) or len(names) < 2:
        return docstring
    end = END.search(docstring)
    prose = docstring[: end.start()] if end else docstring
    rows = {name: _said(prose, name.lstrip("*")) or COMMON.get(name, "") for name in names}
    if sum(map(bool, rows.values())) < 2:
        return docstring
    section = "\n".join(["Args:", *(f"    {name}: {said or '(see above)'}" for name, said in rows.items())])
    after = docstring[end.start() :] if end else ""
    return "\n\n".join(filter(None, [prose.rstrip(), section, after]))


def _said(prose: str, name: str) -> str:
    """The clause that begins with the parameter's name, or the first one that has it."""
    clauses = re.split(r"(?<=[.;])\s+(?=``|[A-Z])|\n\n", prose)
    for clause in (" ".join(clause.split()).rstrip(".;") for clause in clauses):
        if begun := re.match(rf"``{re.escape(name)}``:\s*(.*)", clause):
            return begun[1]
        if re.match(rf"(?:``\w+``(?:, | and | or ))*``{re.escape(name)}``", clause):
            return clause
    return ""
