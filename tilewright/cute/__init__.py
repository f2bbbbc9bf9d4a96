"""``cute``: layouts, tensors, atoms, tiled operations, jit and kernel, under the CuTe DSL's documented names."""

from tilewright._names import attach

attach(__name__)
