"""``cutlass.base_dsl.dsl``: the value protocol as functions."""

from tilewright._names import attach

attach(__name__)
