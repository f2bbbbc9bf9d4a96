"""``cutlass.base_dsl.common``: the errors of the DSL."""

from tilewright._names import attach

attach(__name__)
