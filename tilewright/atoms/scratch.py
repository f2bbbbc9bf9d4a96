"""Reused work arrays of the simulator's matrix instructions.

A fresh array of half a megabyte costs more in page faults than the multiplication that fills it.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

KEPT = 64


class _Pool(threading.local):
    def __init__(self) -> None:
        self.arrays: dict[tuple[Any, ...], np.ndarray[Any, Any]] = {}


_pool = _Pool()


def scratch(purpose: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array with arbitrary contents, valid until the next request for the same purpose, shape and dtype."""
    key = (purpose, shape, dtype)
    array = _pool.arrays.get(key)
    if array is None:
        if len(_pool.arrays) >= KEPT:
            _pool.arrays.clear()
        array = _pool.arrays[key] = np.empty(shape, dtype=dtype)
    return array
