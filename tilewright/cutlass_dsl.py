"""``cutlass.cutlass_dsl``: the older module of the types and of the value protocol as functions."""

from tilewright._names import attach

attach(__name__)
