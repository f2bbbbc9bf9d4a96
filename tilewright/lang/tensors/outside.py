"""Elements that a program reads outside a register tensor: refused, or undefined where the user says so.

Compilers leave out the store of an undefined value, so that programs run that read one too many. With
``TILEWRIGHT_OUTSIDE_REGISTERS=undefined`` such a value can be stored, which stores nothing; nothing else can be done
with it.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from tilewright.errors import ConstraintError

SWITCH = "TILEWRIGHT_OUTSIDE_REGISTERS"


def allowed() -> bool:
    """Whether the user lets programs go on that read outside a register tensor."""
    setting = os.environ.get(SWITCH, "")
    if setting not in ("", "undefined"):
        raise ConstraintError(f"{SWITCH}={setting}: expected `undefined`, or that the variable is not set")
    return bool(setting)


class UndefinedElement:
    """The value that a program reads outside a register tensor; ``reason`` says where."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def _refuse(self, *_: Any) -> NoReturn:
        raise ConstraintError(f"{self.reason}; this undefined value can only be stored, which stores nothing")

    __bool__ = __int__ = __float__ = __index__ = __iter__ = __len__ = __getitem__ = __call__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __neg__ = __abs__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __invert__ = _refuse
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = _refuse
    __rrshift__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for such names itself
            raise AttributeError(name)
        return self._refuse()
