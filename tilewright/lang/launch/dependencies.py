"""The state that a program was staged from besides its arguments: when it changes, the program must be staged again.

Followed are the globals and closure variables that the staged functions read (those of the user's plain functions that
they call included), their defaults, and the attributes of the user's modules: a variable has changed when it holds
another object that is not equal to the old one. Of the lists, dicts, objects and classes among them, and of the objects
that are part of the program (``self``, ``Constexpr`` parameters), the elements and attributes are compared, too, but
not what is deeper.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CellType, FunctionType, ModuleType
from typing import Any

from tilewright.lang.arguments.kinds import Argument, StaticArgument
from tilewright.lang.launch.marked import MarkedFunction
from tilewright.lang.staging.location import is_user_file
from tilewright.lang.staging.objects import same_static
from tilewright.lang.staging.source import names_of


class Dependencies:
    """The variables of some functions, and the objects among some arguments, as they are now.

    With ``before``, which was made before the functions were staged: an object that staging itself changed (a list of
    what was staged) is not compared.
    """

    def __init__(
        self, functions: Iterable[FunctionType], arguments: Iterable[Argument], before: Dependencies | None = None
    ) -> None:
        self._variables: list[tuple[Any, str, Any]] = []
        """A namespace, a closure's cell or a function, the name in it, and what it held."""
        self._functions: set[FunctionType] = set()
        for function in functions:
            self._read(function)
        fixed = [a.value for a in arguments if isinstance(a, StaticArgument)]
        holders = [*(value for _, _, value in self._variables), *fixed, *map(type, fixed)]
        changed = {id(holder) for holder in before.changed()} if before else ()
        self._contents = [(h, inside) for h in holders if (inside := contents(h)) is not None and id(h) not in changed]

    def hold(self) -> bool:
        """Whether everything is as it was."""
        for scope, name, before in self._variables:  # the usual case without a call of a function of this package
            now = scope.get(name) if type(scope) is dict else getattr(scope, name)
            if now is not before and not same_static(now, before):
                return False
        return not self._contents or not self.changed()

    def changed(self) -> list[Any]:
        """The objects whose elements or attributes are not as they were."""
        return [holder for holder, before in self._contents if not same_static(contents(holder), before)]

    def _read(self, function: FunctionType) -> None:
        if function in self._functions:
            return
        self._functions.add(function)
        names = names_of(function.__code__)
        for name in names & function.__globals__.keys():
            self._add(function.__globals__, name, function.__globals__[name], names)
        for cell in function.__closure__ or ():
            if cell != CellType():  # a variable that is not assigned yet
                self._add(cell, "cell_contents", cell.cell_contents, names)
        for name in ("__defaults__", "__kwdefaults__"):
            self._variables.append((function, name, getattr(function, name)))

    def _add(self, scope: Any, name: str, value: Any, names: set[str]) -> None:
        self._variables.append((scope, name, value))
        value = value.function if isinstance(value, MarkedFunction) else value
        if isinstance(value, FunctionType) and is_user_file(value.__code__.co_filename):
            self._read(value)
        elif isinstance(value, ModuleType) and is_user_file(getattr(value, "__file__", None) or "<module>"):
            self._variables += [(vars(value), n, v) for n, v in vars(value).items() if n in names]


def contents(value: Any) -> Any:
    """The elements of a list or dict, the attributes of an object or class of the user's; None of anything else."""
    if isinstance(value, (list, dict)):
        return value.copy()
    package = (value if isinstance(value, type) else type(value)).__module__.partition(".")[0]
    stateless = package in ("tilewright", "builtins") or isinstance(value, (FunctionType, ModuleType))
    if stateless or not hasattr(value, "__dict__"):
        return None
    return {n: v for n, v in vars(value).items() if not n.startswith("__") and not isinstance(v, MarkedFunction)}
