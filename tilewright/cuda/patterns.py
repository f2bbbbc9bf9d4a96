"""Lists of offsets as C++ text: a formula of the loop index where there is one, else a table."""

from __future__ import annotations

from collections.abc import Sequence


def mixed_radix(offsets: Sequence[int]) -> tuple[int, list[tuple[int, int]]] | None:
    """``(base, [(size, stride), ...])`` (fastest first) if the list counts like the digits of a number, else None.

    >>> mixed_radix([4, 5, 6, 7]), mixed_radix([0, 1, 8, 9, 16, 17]), mixed_radix([0, 1, 3])
    ((4, [(4, 1)]), (0, [(2, 1), (3, 8)]), None)
    """
    base, rest = offsets[0], [o - offsets[0] for o in offsets]
    digits: list[tuple[int, int]] = []
    while len(rest) > 1:
        # The fastest digit is the first run of equal steps; the first offsets of all runs are the other digits.
        stride = rest[1]
        run = next((i for i in range(1, len(rest)) if rest[i] != i * stride), len(rest))
        if len(rest) % run:
            return None
        heads = rest[::run]
        if any(rest[i] != heads[i // run] + (i % run) * stride for i in range(len(rest))):
            return None
        digits.append((run, stride))
        rest = heads
    return base, digits or [(1, 0)]


def contiguous(offsets: Sequence[int]) -> bool:
    return all(o == offsets[0] + i for i, o in enumerate(offsets))


def formula(offsets: Sequence[int], index: str) -> str | None:
    """The offset at position ``index`` as C++ text; None where there is no short formula.

    >>> formula([4, 5, 6, 7], "i"), formula([0, 1, 8, 9], "i"), formula([3, 2, 1], "i"), formula([3, 1, 2], "i")
    ('4 + i', 'i % 2 + i / 2 * 8', '3 - i', None)
    """
    if (radix_form := mixed_radix(offsets)) is None or len(radix_form[1]) > 3:
        return None
    base, digits = radix_form
    terms, passed = ([str(base)] if base else []), 1
    for position, (size, stride) in enumerate(digits):
        digit = index if passed == 1 else f"{index} / {passed}"
        if position + 1 < len(digits):
            digit = f"{digit} % {size}"
        if stride:
            factor = "" if abs(stride) == 1 else f" * {abs(stride)}"
            terms.append(("-" if stride < 0 else "") + digit + factor)
        passed *= size
    return " + ".join(terms).replace("+ -", "- ") or "0"


def table(offsets: Sequence[int]) -> str:
    """``{3, 1, 2}``: the initialiser of an array of offsets."""
    return "{" + ", ".join(map(str, offsets)) + "}"
