"""Kinds of arguments, as libraries name them."""

from __future__ import annotations

from typing import NamedTuple


class ConstNone(NamedTuple):
    """An argument that is None when a compiled function is called."""

    name: str
