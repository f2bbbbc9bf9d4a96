# Made by `python tools/stubs.py` from tilewright/utils/layout.py; do not edit.
"""``utils.layout``: the older module of ``LayoutEnum``."""

from tilewright.utils.layout_enum import LayoutEnum as LayoutEnum
