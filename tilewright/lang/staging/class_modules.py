"""Whose a class is: the module that has it, which need not be the one that it names.

Objects of libraries are not followed as those of the program are. ``cls.__module__`` says of which one a class is, but
it is the ``__name__`` of the code that called ``type``: "builtins" where ``exec`` was given no name, "abc" for a class
that ``ABCMeta`` made as a function, "types" for one of ``dataclasses.make_dataclass``. So the module is asked for it.
"""

from __future__ import annotations

import sys
from typing import Any


def module_of(cls: type) -> str:
    """The name of the module that has this class; empty where the module that the class names has another one there, or
    none.

    >>> from abc import ABC, ABCMeta
    >>> module_of(ABC), ABCMeta("Made", (), {}).__module__, module_of(ABCMeta("Made", (), {}))
    ('abc', 'abc', '')
    """
    name = declared_module(cls)
    if is_immutable(cls):
        return name
    if "<locals>" in cls.__qualname__:  # it cannot be looked up; `builtins` has no code in Python
        return "" if name == "builtins" else name
    module: Any = sys.modules.get(name)
    for part in cls.__qualname__.split("."):
        module = getattr(module, part, None)
    return name if module is cls else ""


def declared_module(cls: type) -> str:
    """The name of a module as the class has it: extension modules may show a descriptor in its place, ``type`` called
    by code without a ``__name__`` gives none."""
    name = getattr(cls, "__module__", "")
    return name if isinstance(name, str) else ""


def is_immutable(cls: type) -> bool:
    """Whether its attributes cannot be assigned, as those of classes written in C; no class of Python's is so."""
    return bool(cls.__flags__ & 1 << 8)
