# Made by `python tools/stubs.py` from tilewright/cute/atom.py; do not edit.
"""``cute.atom``: the older module of names that ``cute`` has, and of names for annotations."""

from tilewright.cute import *
