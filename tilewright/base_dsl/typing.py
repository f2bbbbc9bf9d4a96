"""``cutlass.base_dsl.typing``: numeric types, and the protocols of arguments."""

from tilewright._names import attach

attach(__name__)
