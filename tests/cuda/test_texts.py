"""The CUDA C++ of small kernels that reach every branch of the emitter is the one that is kept."""

from __future__ import annotations

from tests.cuda import texts

CHANGED = "if the change is meant, write it: python -m tests.cuda.texts"


def test_the_text_of_every_kernel_is_the_one_that_is_kept() -> None:
    kept = texts.KEPT.read_text(encoding="utf-8").rstrip("\n").split(texts.CUT)
    made = texts.texts()
    assert len(made) == len(kept), CHANGED
    for (name, text), before in zip(made.items(), kept, strict=True):
        for line, old in zip(text.splitlines(), before.splitlines(), strict=False):
            assert line == old, f"{name}: {CHANGED}"
        assert text == before, f"{name}: {CHANGED}"
