"""``cutlass.base_dsl``: the modules beneath the CuTe DSL, of which programs import a few names."""

from tilewright._names import attach

attach(__name__)
