"""The kernels of an exported function for the simulator. The files hold machine code; what the simulator runs is kept
on the disk of this computer, beside cached machine code, and found by what the files say.

An entry is a pickle, and is taken only where :mod:`tilewright.own_files` finds that no other user could have written
it: it is not in the exported files, which may come from anywhere.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

from tilewright import disk_cache
from tilewright.ir.core import Function
from tilewright.lang.launch import stored


def keep(description: dict[str, Any], codes: list[bytes], kernels: list[Function]) -> None:
    """Write the kernels, unless they hold something that cannot be written."""
    try:
        data = pickle.dumps(kernels, protocol=5)
        name = _name(description, codes)
    except (pickle.PicklingError, TypeError, AttributeError, stored.Undescribed):
        return
    disk_cache.write(name, {"kernels": data})


def kept(description: dict[str, Any], codes: list[bytes]) -> list[Function] | None:
    """The kernels of the function that was exported here with this description and machine code."""
    try:
        entry = disk_cache.read(_name(description, codes))
    except stored.Undescribed:
        return None
    if entry is None or "kernels" not in entry:
        return None
    kernels: list[Function] = pickle.loads(entry["kernels"])
    return kernels


def _name(description: dict[str, Any], codes: list[bytes]) -> str:
    described = {name: value for name, value in description.items() if name != "codes"}
    return disk_cache.key("exported", stored.sources(), json.dumps(described, sort_keys=True), *codes)
