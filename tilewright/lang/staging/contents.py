"""What Python objects hold, and which of it can change: one table, asked before and after a region.

A class has *stores*: a list its elements, an object its attributes, a list subclass both. A store is read as a dict;
where it has a ``write``, what it holds may differ from one path of a program to the other. Whatever else a store holds
may not change in a region: what is not in the table is compared by its pickled state.
"""

from __future__ import annotations

import array
import collections
import contextvars
import enum
import functools
import gc
import io
import operator
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from importlib.machinery import BuiltinImporter, ExtensionFileLoader
from types import BuiltinMethodType, CellType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NamedTuple

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.location import counts_as_user, is_user_file
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

Held = dict[Any, Any]
_STATIC_PACKAGES = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = frozenset(
    "builtins numpy torch cuda enum typing abc pathlib re datetime decimal fractions logging _io io _thread "
    "tvm_ffi.core".split()
)
"""Packages whose objects do not change, or hold no run-time values (files); those in the table below excepted."""
_FIXED = (Numeric, Value, Undefined, enum.Enum, BaseException, io.IOBase)


class Store(NamedTuple):
    """One part of an object. ``get`` and ``write`` treat a single element; without ``write`` it must stay as it is."""

    word: str
    """What a region may not change of it: its length, its keys, ..."""
    label: str
    """How messages call an element: a format of ``path`` and ``key``."""
    read: Callable[[Any], Held]
    shared: bool = True
    """Whether a change shows under every name of the object, so that it matters which of two objects a name holds."""
    get: Callable[[Any, Any], Any] | None = None
    write: Callable[[Any, Any, Any], None] | None = None
    state: bool = False
    """What is read is a copy of the state, not the objects in it."""


def _numbered(holder: Any) -> Held:
    return dict(enumerate(holder))


def _referents(holder: Any) -> Held:
    return dict(enumerate(gc.get_referents(holder)))


def _of_function(function: FunctionType) -> Held:
    """The objects that a function brings along: those of its closure and its defaults, and the globals that it
    names."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    held = {name: cell.cell_contents for name, cell in cells if cell != CellType()}
    defaults = function.__defaults__ or ()
    held.update(zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True))
    held.update(function.__kwdefaults__ or {})
    if counts_as_user(code):
        scope = function.__globals__
        held.update((name, scope[name]) for name in names_of(code) & scope.keys())
    return held


def _of_class(cls: type) -> Held:
    """The attributes of the user's classes; those of libraries are not followed."""
    held: Held = {}
    for base in reversed(cls.__mro__):
        if _is_users(sys.modules.get(base.__module__)) and base.__module__ != "builtins":
            held.update((n, v) for n, v in vars(base).items() if not n.startswith("__") or isinstance(v, FunctionType))
    return held


def _of_module(module: ModuleType) -> Held:
    """The variables of the user's modules, and the generators of random numbers behind the functions of others."""
    if _is_users(module):
        return {name: value for name, value in vars(module).items() if not name.startswith("__")}
    if module.__name__ == "random":
        return {"random": vars(module)["_inst"]}
    return {"random": module.random.mtrand._rand} if module.__name__ == "numpy" else {}


def _is_users(module: ModuleType | None) -> bool:
    path = getattr(module, "__file__", None)
    return path is None and getattr(module, "__spec__", None) is None or bool(path and is_user_file(path))


def _of_cached(function: Any) -> Held:
    followed = isinstance(function.__wrapped__, FunctionType) and counts_as_user(function.__wrapped__.__code__)
    return {"function": function.__wrapped__, "calls": function.cache_info().misses} if followed else {}


def _of_array(found: Any) -> Held:
    return _numbered(found.flat) if found.dtype.hasobject else {0: found.tobytes()}


def _pickled(holder: Any) -> Held:
    """The state of an object of an unknown class, by pickling; an exception where it cannot be pickled."""
    if isinstance(holder, Iterator):
        raise TypeError("its position is not to be read")
    return {0: pickle.dumps(holder.__reduce_ex__(4))}


_ITEM, _NAME, _ATTRIBUTE = "{path}[{key!r}]", "{key}", "{path}.{key}"
_BEHIND = Store("variables", _NAME, _referents, shared=False)
_STATE = Store("contents", _ITEM, _pickled, state=True)
_NATIVE: dict[Any, Store | None] = {
    list: Store("length", _ITEM, _numbered, True, list.__getitem__, list.__setitem__),
    dict: Store("keys", _ITEM, lambda d: dict(dict.items(d)), True, dict.__getitem__, dict.__setitem__),
    collections.OrderedDict: Store(
        "keys", _ITEM, lambda d: dict(collections.OrderedDict.items(d)), True, dict.__getitem__, dict.__setitem__),
    tuple: Store("contents", _ITEM, _numbered, shared=False),
    frozenset: Store("contents", _ITEM, _numbered, shared=False),
    set: Store("contents", _ITEM, _numbered),
    collections.deque: Store("contents", _ITEM, _numbered),
    bytearray: Store("contents", _ITEM, lambda b: {0: bytes(b)}, state=True),
    array.array: Store("contents", _ITEM, lambda a: {0: a.tobytes()}, state=True),
    memoryview: Store("contents", _NAME, lambda m: {"obj": m.obj}, shared=False),
    weakref.ref: Store("target", _NAME, lambda w: {"target": w()}, shared=False),
    contextvars.ContextVar: Store("value", _NAME, lambda v: {"value": v.get(None)}),
    FunctionType: Store("variables", _NAME, _of_function, shared=False),
    functools._lru_cache_wrapper: Store("remembered results", _NAME, _of_cached, shared=False),
    type: Store("attributes", _ATTRIBUTE, _of_class, shared=False),
    ModuleType: Store("variables", _ATTRIBUTE, _of_module, shared=False),
    **dict.fromkeys(
        (MethodType, BuiltinMethodType, MethodWrapperType, functools.partial, property, staticmethod, classmethod,
         types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items())), _BEHIND),
    **dict.fromkeys((object, int, float, complex, str, bytes, slice, range, type(None), types.SimpleNamespace)),
}  # fmt: skip
"""What instances of a class not written in Python hold, by class; None: nothing that changes."""
_BY_NAME = {
    "numpy.ndarray": Store("contents", _ITEM, _of_array),
    "torch.Tensor": Store("contents", _ITEM, lambda t: {0: t._version}, state=True),
    **dict.fromkeys(("tvm_ffi.container.List", "tvm_ffi.container.Dict"), _STATE),
    "numpy.random._generator.Generator": _STATE, "numpy.random.mtrand.RandomState": _STATE,
}  # fmt: skip
_MARKED = Store("function", _NAME, lambda marked: {marked.__name__: marked.function}, shared=False)


def module_of(cls: type) -> str:
    """The name of the module of a class; empty for those of extension modules that show a descriptor in its place."""
    return cls.__module__ if isinstance(cls.__module__, str) else ""


def _stores_of(cls: type) -> tuple[Store, ...]:
    named = _BY_NAME.get(f"{cls.__module__}.{cls.__qualname__}")
    if named is not None or hasattr(cls, "marked"):
        return (named or _MARKED,)
    packages = module_of(cls).split(".")
    ours = packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES
    if issubclass(cls, _FIXED) or ours or getattr(cls, "__carry_immutable__", False):
        return ()
    # State outside of attributes is that of the nearest base not written in Python. If the table has it, it is read
    # element by element; an unknown one is compared by its pickled state.
    native = next(base for base in cls.__mro__ if _is_native(base))
    known = next((base for base in native.__mro__ if base in _NATIVE), object)
    found = [_NATIVE[known]]
    if known is object and native is not object:
        found = [_STATE] if module_of(native) not in _FOREIGN or issubclass(cls, Iterator) else []
    if (packages[0] not in _FOREIGN and not issubclass(cls, type)) or cls is FunctionType:
        found.insert(0, _attributes(cls))  # first: to read `__dict__` may make one, which the other store would show
    return tuple(store for store in found if store is not None)


stores_of: Callable[[type], tuple[Store, ...]] = functools.cache(_stores_of)
"""What instances of a class hold; empty: nothing that a region could change."""


def _is_native(cls: type) -> bool:
    """Whether a class is written in another language than Python, so that its state is not in attributes."""
    loader = getattr(getattr(sys.modules.get(module_of(cls)), "__spec__", None), "loader", None)
    extension = loader is BuiltinImporter or isinstance(loader, ExtensionFileLoader)
    return extension or bool(cls.__flags__ & 1 << 8)  # bit 8: "immutable type", which no class of Python's is


def _attributes(cls: type) -> Store | None:
    """The store of attributes, of ``__dict__`` and of ``__slots__``, read without asking ``__getattr__``."""
    slots = [(n, d) for base in cls.__mro__ for n, d in vars(base).items() if isinstance(d, types.MemberDescriptorType)
             and not _is_native(base)]  # fmt: skip
    if not slots and not cls.__dictoffset__:
        return None

    def read(holder: Any) -> Held:
        held = dict(object.__getattribute__(holder, "__dict__")) if cls.__dictoffset__ else {}
        for name, slot in slots:
            try:
                held[name] = slot.__get__(holder)
            except AttributeError:  # a slot that nothing was assigned to
                pass
        return held

    if getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        return Store("attributes", _ATTRIBUTE, read, shared=False)
    return Store("attributes", _ATTRIBUTE, read, True, object.__getattribute__, object.__setattr__)


def can_change(value: Any) -> bool:
    """Whether an object can change, so that it matters which of two objects a name holds."""
    return any(store.shared for store in stores_of(type(value)))


def unchanged(before: Held, now: Held) -> bool:
    """Whether a store holds the same objects under the same keys."""
    return list(now) == list(before) and all(map(operator.is_, now.values(), before.values()))


def same(a: Any, b: Any) -> bool:
    """Whether a place that held ``a`` and now holds ``b`` has not changed."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Numeric):
        return a.value is b.value or (a.is_static and b.is_static and repr(a.value) == repr(b.value))
    if isinstance(a, MethodType):  # a new object at each look-up
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    # -0.0 equals 0.0 and a NaN not even itself: repr tells which number it is.
    return a == b if type(a) in (int, bool, str, bytes) else type(a) is float and repr(a) == repr(b)
