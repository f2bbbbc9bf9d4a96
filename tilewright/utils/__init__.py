"""``cutlass.utils``: shared memory, matrix orders, the hardware, tile schedulers."""

from tilewright._names import attach

attach(__name__)
