"""Values whose origin is hidden from the compiler, so that it recomputes cheap values instead of keeping registers."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.bits import Rematerialize
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Int32, wrap


def rematerialize(value: Any) -> Any:
    """``value`` (an integer, taken as Int32), with what is computed from the result kept behind this point.

    Addresses that derive from the thread's index and are needed after a long loop would otherwise be computed before
    it and occupy registers in the meantime. Numbers that are known while staging are returned as they are.
    """
    number = Int32(value)
    if number.is_static:
        return value
    (copied,) = call(Rematerialize(), number.ir_value(), results=(Int32.ir_type,))
    return wrap(copied, number.facts)
