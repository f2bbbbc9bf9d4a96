"""The primitive that changes a tensor map in memory."""

from __future__ import annotations

import enum
from typing import Any

from tilewright.atoms.tensormap import FIELDS, ReplaceTensorMap
from tilewright.errors import ConstraintError
from tilewright.experimental.choices import chosen
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Uint32, Uint64, unwrap

__all__ = ["TensormapField", "tensormap_replace"]


class TensormapField(enum.Enum):
    """What ``tensormap.replace`` sets of a tensor map."""

    GLOBAL_ADDRESS = "global_address"
    RANK = "rank"
    BOX_DIM = "box_dim"
    GLOBAL_DIM = "global_dim"
    GLOBAL_STRIDE = "global_stride"
    ELEMENT_STRIDE = "element_stride"
    ELEMTYPE = "elemtype"
    INTERLEAVE_LAYOUT = "interleave_layout"
    SWIZZLE_MODE = "swizzle_mode"
    SWIZZLE_ATOMICITY = "swizzle_atomicity"
    FILL_MODE = "fill_mode"


def tensormap_replace(
    field: Any, tensormap_ptr: Any, *, new_value: Any, ord: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """``tensormap.replace.tile``: set one field of the tensor map in the 128 bytes at ``tensormap_ptr``, a copy of one
    (``cute.nvgpu.cpasync.copy_tensormap``). ``ord`` is the mode of ``GLOBAL_DIM`` (elements), and of ``GLOBAL_STRIDE``
    (bytes) the mode less one, as the contiguous mode has no stride. sm_90a and its like.

    TMA sees the change behind a release and an acquire of the tensor map (:func:`fence_proxy_release`,
    :func:`fence_proxy_acquire`). The fields that say how a box is copied stay as they are.

    >>> tensormap_replace(TensormapField.BOX_DIM, None, new_value=32, ord=0)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tensormap_replace: BOX_DIM stays as the tensor map was made; GLOBAL_ADDRESS, ...
    """
    what = "tensormap_replace"
    chosen_field = chosen(TensormapField, field, what)
    if chosen_field.value not in FIELDS:
        replaced = ", ".join(name.upper() for name in FIELDS)
        raise ConstraintError(f"{what}: {chosen_field.name} stays as the tensor map was made; {replaced} can be set")
    count, mode = FIELDS[chosen_field.value].places, unwrap(ord)
    if (mode is None) is (count > 1):
        need = f"ord from 0 to {count - 1} says which" if count > 1 else "there is one: leave ord out"
        raise ConstraintError(f"{what}: {chosen_field.name}: {need}")
    if mode is not None and not isinstance(mode, int):
        raise ConstraintError(f"{what}: ord is known while staging, not a run-time number")
    value = Uint32(new_value) if chosen_field is TensormapField.GLOBAL_DIM else Uint64(new_value)
    call(ReplaceTensorMap(chosen_field.value, mode or 0), pointer_of(tensormap_ptr, what), value)
