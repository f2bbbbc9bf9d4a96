"""What a prepared weight was prepared for, and where that is kept: in the number of its words.

The words of a weight (N, K) are a vector of Int32: N * K numbers of 4 or 8 bits, which are whole blocks of 128 words,
and after them 1 to 127 words more, which no kernel reads. How many more is the *mark*. It says the order of the
numbers, their type, whether they have zero points, and the elements of K that share a scale. N and K are those of the
scales.

An extent stays with a tensor that is saved and loaded, moved to another device, put into a ``state_dict`` or traced by
``torch.compile``, and to read it does not wait for a GPU. An attribute of the tensor would be lost by all of these, and
words in front of the numbers would have to be read from the GPU before each product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilewright import Float4E2M1FN, Float8E4M3FN, Int4, Int8
from tilewright.errors import ArgumentError
from tilewright.gemm.mixed_config import COLUMNS, DEPTH, LANES, WORDS

GROUPS = (32, 64, 128)
"""The elements of K that may share a scale."""

BLOCK = LANES * WORDS
"""The words of 8 rows and 128 elements of K of 4 bits, or 64 of 8 bits."""

ORDER = 1
"""Which order of the numbers ``prepared_layout`` is, counted from 1. Another order of any kind of weight is the next
number: then words in the order before have marks that are not known any more. (Words of four dimensions, of the first
one of all, have none.)"""

MARKS = 16
"""The marks of an order."""


@dataclass(frozen=True)
class WeightSettings:
    """What the words of a weight were prepared for: the numeric class of its numbers, whether they have zero points,
    and the elements of K that share a scale.

    >>> settings = WeightSettings(Int4, False, 128)
    >>> settings.words(16, 256), settings.mark
    (515, 3)
    >>> WeightSettings.of(515) == settings
    True
    """

    dtype: Any
    zeros: bool
    group: int

    @property
    def mark(self) -> int:
        """Words after the numbers."""
        return (ORDER - 1) * MARKS + 1 + KNOWN.index(self)

    def words(self, n: int, k: int) -> int:
        """Words of a weight (N, K), with the mark."""
        return n * k * self.dtype.width // 32 + self.mark

    @staticmethod
    def of(words: int) -> WeightSettings | None:
        """The settings of a weight of so many words; None where these have no mark of this order."""
        place = words % BLOCK - 1 - (ORDER - 1) * MARKS
        return KNOWN[place] if 0 <= place < len(KNOWN) else None

    def __str__(self) -> str:
        return f"{self.dtype.__name__} {'with' if self.zeros else 'without'} zero points, groups of {self.group}"


KNOWN = tuple(
    WeightSettings(dtype, zeros, group)
    for dtype, zeros in ((Int4, False), (Int4, True), (Int8, False), (Float8E4M3FN, False), (Float4E2M1FN, False))
    for group in GROUPS
)
"""All settings, in the order of their marks: new ones come last."""


@lru_cache(maxsize=4096)
def settings_of(words: tuple[int, ...], scales: tuple[int, ...], zeros: bool) -> WeightSettings:
    """The settings of words and scales of these shapes, with or without zero points; ArgumentError where they are no
    prepared weight.

    >>> str(settings_of((515,), (2, 16), False))
    'Int4 without zero points, groups of 128'
    """
    settings = WeightSettings.of(words[0]) if len(words) == 1 else None
    if settings is None:
        raise refused("its words have no mark of this version's order", words, scales)
    if len(scales) != 2:
        raise refused("scales are (K / group, N)", words, scales)
    if zeros != settings.zeros:
        raise refused(f"its words are for {settings}, and it has {'' if zeros else 'no '}zero points", words, scales)
    n, k = scales[1], scales[0] * settings.group
    if n % COLUMNS or k % DEPTH or words[0] != settings.words(n, k):
        raise refused(f"its words are for {settings}, and not for (N, K) = {n, k}", words, scales)
    return settings


def refused(why: str, words: tuple[int, ...], scales: tuple[int, ...]) -> ArgumentError:
    """The one error for parts that are no prepared weight."""
    return ArgumentError(
        f"the weight is not prepared, or prepared for other settings: {why} (words of shape {words}, scales {scales}). "
        "Arrange it with prepare_weight again, and keep its words, scales and zero points together"
    )
