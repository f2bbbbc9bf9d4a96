"""``cute.arch``: indices of threads and blocks, synchronisation, warp exchange, atomics, single instructions."""

from tilewright._names import attach

attach(__name__)
