# Made by `python tools/stubs.py` from tilewright/base_dsl/enums.py; do not edit.
"""``cutlass.base_dsl.enums``: architectures, by a newer module's name."""

from tilewright.base_dsl.arch import Arch as Arch
