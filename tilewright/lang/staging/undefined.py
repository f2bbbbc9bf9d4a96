"""What a variable holds when the run-time control flow left it without a usable value."""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright.lang.staging.location import fail, here


class Undefined:
    """Stands for a variable without a value; any use raises a StagingError that names the variable and says why."""

    __slots__ = ("_name", "reason")

    def __init__(self, name: str, reason: str = "") -> None:
        self._name = name
        self.reason = reason or "it is read before anything was assigned to it"

    def _use(self, *_: Any, **__: Any) -> NoReturn:
        raise fail(f"the variable '{self._name}' has no value here: {self.reason}", here(3))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)  # what libraries probe for
        self._use()

    def __repr__(self) -> str:
        return f"<'{self._name}' without a value: {self.reason}>"


_DUNDERS = (
    "add sub mul matmul truediv floordiv mod pow lshift rshift and or xor radd rsub rmul rmatmul rtruediv "
    "rfloordiv rmod "
    "rpow rlshift rrshift rand ror rxor neg pos abs invert lt le gt ge eq ne bool call getitem setitem iter len int "
    "float index contains enter exit str"
)
for _dunder in _DUNDERS.split():
    setattr(Undefined, f"__{_dunder}__", Undefined._use)
Undefined.__hash__ = object.__hash__  # type: ignore[method-assign]  # what __eq__ took away


def deleted(names: tuple[str, ...]) -> tuple[Undefined, ...]:
    """One for each name: what ``del`` leaves."""
    return tuple(Undefined(name, "`del` took it away") for name in names)


def undefined(names: tuple[str, ...]) -> tuple[Undefined, ...]:
    """One for each name: what the locals of a staged function hold before their first assignment."""
    return tuple(map(Undefined, names))
