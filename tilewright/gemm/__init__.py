"""The GEMM library, written in the language."""

from tilewright._names import attach

attach(__name__)
