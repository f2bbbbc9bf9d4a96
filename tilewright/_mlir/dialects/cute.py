"""``cutlass._mlir.dialects.cute``: the memory spaces by this older place of their name."""

from tilewright._names import attach
from tilewright.lang.tensors.address_space import AddressSpace

__all__ = ["AddressSpace"]
attach(__name__)
