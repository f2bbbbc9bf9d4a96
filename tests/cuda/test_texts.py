"""The CUDA C++ of small kernels that reach every branch of the emitter is the one that is kept."""

from __future__ import annotations

from tests import kept
from tests.cuda import texts


def test_the_text_of_every_kernel_is_the_one_that_is_kept() -> None:
    kept.check(texts.FILE, texts.texts(), texts.COMMAND)
