"""What a resource's methods are to schedules: ``consumer_work`` reads out of the resource, ``producer_work`` writes.

While a schedule is captured, a call of such a method is recorded and gives tokens, the names of the values that it will
return; a token is an argument of other methods of the same task. Outside of schedules the method is an ordinary one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling.capture import Token, record
from tilewright.experimental.task_scheduling.enums import WorkAttr


class TaskLocalVariable:
    """A value that one method of a task returns and others take. ``dtype``: its type; ``default``: what it is before
    the method has run, which lets it pass through loops and guards, or ``default_factory``, which makes it in the
    kernel; ``docs`` says what it is; ``runtime_slot_name``: the name of an attribute that no class declares.

    >>> from tilewright import Int32
    >>> TaskLocalVariable(dtype=Int32, default=Int32(0), docs="the row").docs
    'the row'
    """

    def __init__(
        self,
        dtype: Any = None,
        default: Any = None,
        docs: str = "",
        default_factory: Callable[[], Any] | None = None,
        runtime_slot_name: str = "",
    ) -> None:
        if default is not None and default_factory is not None:
            raise ConstraintError("TaskLocalVariable: a default, or a default_factory that makes it; not both")
        self.dtype, self.default, self.docs = dtype, default, docs
        self.default_factory = default_factory
        self.name = runtime_slot_name

    def first(self) -> Any:
        """Its value before a method has returned it; None if it has no default."""
        return self.default if self.default_factory is None else self.default_factory()

    @staticmethod
    def uninitialized() -> TaskLocalVariable:
        """The mark in a class of a variable that ``__post_init__`` or ``__init__`` binds.

        >>> TaskLocalVariable.uninitialized().default is None
        True
        """
        return TaskLocalVariable()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class WorkMethod:
    """A method of a resource that schedules call. ``role``: ``"consumer"`` or ``"producer"``."""

    def __init__(self, function: Any, role: str, work_attrs: WorkAttr, returns: Any) -> None:
        self.function, self.role, self.attrs = function, role, work_attrs
        several = isinstance(returns, (tuple, list))
        self.returns: Sequence[Any] = tuple(returns) if several else () if returns is None else (returns,)
        self.several = several
        self.name: str = getattr(function, "__name__", "work")
        self.__doc__ = getattr(function, "__doc__", None)
        self.__isabstractmethod__ = getattr(function, "__isabstractmethod__", False)

    @property
    def is_auxiliary(self) -> bool:
        return WorkAttr.AUXILIARY in self.attrs

    def slots(self) -> list[str]:
        """The names of the variables that it returns."""
        names = [x if isinstance(x, str) else getattr(x, "name", "") for x in self.returns]
        if not all(names):
            raise ConstraintError(
                f"{self.name}: returns= names attributes of the class (TaskLocalVariable.uninitialized() or a field), "
                f"not {self.returns!r}"
            )
        return names

    def __get__(self, resource: Any, owner: type | None = None) -> Any:
        return self if resource is None else BoundWork(self, resource)


@dataclasses.dataclass(frozen=True, eq=False)
class BoundWork:
    """A work method of one resource."""

    method: WorkMethod
    resource: Any

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method itself."""
        return self.method.function.__get__(self.resource, type(self.resource))(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not record(self.resource, "work", self.method, args, kwargs, optional=True):
            return self.run(*args, **kwargs)
        slots = self.method.slots()
        tokens = tuple(Token(self.resource, name) for name in slots or (f"{self.method.name}()",))
        return tokens if self.method.several else tokens[0]


def consumer_work(
    method: Callable[..., Any] | None = None, *, work_attrs: WorkAttr = WorkAttr.NONE, returns: Any = None
) -> Any:
    """Mark a method that reads data out of its resource. ``returns``: the class's :class:`TaskLocalVariable` that its
    result is (the attribute, its field or its name), or a tuple of them. ``work_attrs=WorkAttr.AUXILIARY``: it reads
    nothing that the pipeline guards.

    >>> class Box:
    ...     @consumer_work(returns="item")
    ...     def get(self, stage_info):
    ...         return 3
    >>> Box().get(None), Box.get.role  # outside of schedules an ordinary method
    (3, 'consumer')
    """
    return _mark(method, "consumer", work_attrs, returns)


def producer_work(
    method: Callable[..., Any] | None = None, *, work_attrs: WorkAttr = WorkAttr.NONE, returns: Any = None
) -> Any:
    """Mark a method that writes data into its resource; see :func:`consumer_work`.

    >>> producer_work(lambda self, stage_info: None).role
    'producer'
    """
    return _mark(method, "producer", work_attrs, returns)


def _mark(method: Any, role: str, work_attrs: WorkAttr, returns: Any) -> Any:
    def mark(function: Any) -> WorkMethod:
        return WorkMethod(function, role, work_attrs, returns)

    return mark if method is None else mark(method)
