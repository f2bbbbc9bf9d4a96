"""``cutlass.experimental.primitives``: what libraries call of it, as the instructions that they name."""

from tilewright._names import attach

attach(__name__)
