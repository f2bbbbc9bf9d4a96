"""``cutlass.pipeline``: rings of shared-memory stages between threads that produce and threads that consume."""

from tilewright._names import attach

attach(__name__)
