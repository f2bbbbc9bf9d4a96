"""What Python objects hold, and which of it can change: one table, asked before and after a region.

A class has *stores*: a list its elements, an object its attributes, a list subclass both. A store is read as a dict;
where it has a ``write``, what it holds may differ from one path of a program to the other. Whatever else a store holds
may not change in a region: what is not in the table is compared by its pickled state.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import gc
import io
import operator
import pickle
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from importlib.machinery import BuiltinImporter, ExtensionFileLoader
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.class_modules import declared_module, is_immutable, module_of
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
_FIXED = (Numeric, Value, Undefined, io.IOBase)
EMPTY = CellType()
REMEMBERED_CODE = 4096


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
    objects: Callable[[Any], list[Any]] | None = None
    """The objects that it holds, where ``read`` does more than to look at them: arrays may be large."""


def _numbered(holder: Any) -> Held:
    return dict(enumerate(holder))


def _referents(holder: Any) -> Held:
    return dict(enumerate(gc.get_referents(holder)))


_FOLLOWED: dict[int, tuple[CodeType, tuple[str, ...]]] = {}
"""By the identity of the code, as to hash code takes longer than to read what a function holds."""


def followed(code: CodeType) -> tuple[str, ...]:
    """The names by which the user's code mentions globals; of libraries' code none are followed."""
    if not counts_as_user(code):
        return ()
    entry = _FOLLOWED.get(id(code))
    if entry is None:
        if len(_FOLLOWED) >= REMEMBERED_CODE:
            _FOLLOWED.clear()
        entry = _FOLLOWED[id(code)] = code, tuple(names_of(code))
    return entry[1]


def _of_function(function: FunctionType) -> Held:
    """The objects that a function brings along: those of its closure and its defaults, and the globals that it
    names."""
    code, held = function.__code__, {}
    if function.__closure__:
        cells = zip(code.co_freevars, function.__closure__, strict=True)
        held = {name: cell.cell_contents for name, cell in cells if cell != EMPTY}
    if defaults := function.__defaults__:
        held.update(zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True))
    if function.__kwdefaults__:
        held.update(function.__kwdefaults__)
    if names := followed(code):
        scope = function.__globals__
        held.update([(name, scope[name]) for name in names if name in scope])
    held["__code__"] = code
    return held


def _of_class(cls: type) -> Held:
    """The attributes of the user's classes; those of libraries are not followed."""
    held: Held = {}
    for base in users_bases(cls):
        held.update((n, v) for n, v in vars(base).items() if not n.startswith("__") or isinstance(v, _METHODS))
    return held


def users_bases(cls: type) -> list[type]:
    """The user's classes among a class and its bases, the bases first."""
    return [
        base
        for base in reversed(cls.__mro__)
        if module_of(base) != "builtins" and is_users(sys.modules.get(module_of(base)))
    ]


def _of_module(module: ModuleType) -> Held:
    """The variables of the user's modules, and the generators of random numbers behind the functions of others."""
    if is_users(module):
        return {name: value for name, value in vars(module).items() if not name.startswith("__")}
    return {"random": _RANDOM[module.__name__](module)} if module.__name__ in _RANDOM else {}


def is_users(module: ModuleType | None) -> bool:
    """Whether a module is the user's: a file of the user, or made by the program itself."""
    path = getattr(module, "__file__", None)
    return path is None and getattr(module, "__spec__", None) is None or bool(path and is_user_file(path))


def _of_cached(function: Any) -> Held:
    """The function behind an ``lru_cache``, how often it ran, and the results that are remembered."""
    if not (isinstance(function.__wrapped__, FunctionType) and counts_as_user(function.__wrapped__.__code__)):
        return {}
    held: Held = {"function": function.__wrapped__, "calls": function.cache_info().misses}
    # A look-up changes the order of the results, not which they are.
    held.update(enumerate(sorted(gc.get_referents(function), key=id)))
    return held


def _of_array(array: Any) -> Held:
    items = _numbered(array.flat) if array.dtype.hasobject else {0: array.tobytes()}
    return {**items, "seen as": f"{array.dtype} {array.shape} {array.flags}", **getattr(array, "__dict__", {})}


def _objects_of_array(array: Any) -> list[Any]:
    return [*(array.flat if array.dtype.hasobject else ()), *getattr(array, "__dict__", {}).values()]


def _of_torch(tensor: Any) -> Held:
    try:
        where = tensor.data_ptr(), tensor.stride()
    except RuntimeError:  # a tensor without memory: of torch.compile, of vmap, a sparse one
        where = None
    seen = f"{tensor._version} {where} {tensor.dtype} {tensor.shape} {tensor.requires_grad}"
    return {"seen as": seen, **tensor.__dict__}


def _of_iterator(iterator: Any) -> Held:
    """What an iterator draws from, and how far it is. TypeError where that cannot be read."""
    held = _referents(iterator)
    if isinstance(iterator, GeneratorType):
        return {**held, "position": iterator.gi_frame and iterator.gi_frame.f_lasti}
    if hasattr(iterator, "__length_hint__"):
        return {**held, "position": operator.length_hint(iterator, -1)}
    with warnings.catch_warnings():  # Python 3.12 and 3.13 deprecate this for itertools
        warnings.simplefilter("ignore", DeprecationWarning)
        _, *parts = iterator.__reduce__()
    return {**held, **{("position", *path): part for path, part in _leaves(parts)}}


def _leaves(parts: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    for i, part in enumerate(parts):
        yield from _leaves(part, (*path, i)) if type(part) is tuple else [((*path, i), part)]


def _pickled(holder: Any) -> Held:
    """The state of an object of an unknown class, by pickling; an exception where it cannot be pickled."""
    return {0: pickle.dumps(holder.__reduce_ex__(4))}


_ITEM, _NAME, _ATTRIBUTE, _SAME = "{path}[{key!r}]", "{key}", "{path}.{key}", "{path}"
NAMED = (_NAME, _SAME)
"""The labels of what a region names when it names the holder."""
BEHIND = Store("variables", _SAME, _referents, shared=False)
_STATE = Store("contents", _ITEM, _pickled, state=True)
_POSITION = Store("position", _SAME, _of_iterator, shared=False)
CLASS = Store("attributes", _ATTRIBUTE, _of_class, shared=False)
MODULE = Store("variables", _ATTRIBUTE, _of_module, shared=False)
MARKED = Store("function", _NAME, lambda marked: {marked.__name__: marked.function}, shared=False)
_METHODS = (FunctionType, staticmethod, classmethod, property)
_RANDOM: dict[str, Callable[[Any], Any]] = {
    "random": lambda module: module._inst,
    "numpy": lambda module: module.random.mtrand._rand,
    "numpy.random": lambda module: module.mtrand._rand,
    "torch": lambda module: module.default_generator,
}
"""The generators of random numbers behind the functions of modules, by the names of these."""
_NATIVE: dict[Any, Store | None] = {
    list: Store("length", _ITEM, _numbered, True, list.__getitem__, list.__setitem__),
    dict: Store("keys", _ITEM, lambda d: dict(dict.items(d)), True, dict.__getitem__, dict.__setitem__),
    collections.OrderedDict: Store("order", _ITEM, lambda d: dict(enumerate(collections.OrderedDict.keys(d)))),
    collections.defaultdict: Store("factory", _ATTRIBUTE, lambda d: {"default_factory": d.default_factory}),
    tuple: Store("contents", _ITEM, _numbered, shared=False),
    frozenset: Store("contents", _ITEM, _numbered, shared=False),
    set: Store("contents", _ITEM, _numbered),
    collections.deque: Store("contents", _ITEM, _numbered),
    bytearray: Store("contents", _ITEM, lambda b: {0: bytes(b)}, state=True),
    array.array: Store("contents", _ITEM, lambda a: {0: a.tobytes()}, state=True),
    memoryview: Store("contents", _SAME, lambda m: {"obj": m.obj}, shared=False),
    weakref.ref: Store("target", _NAME, lambda w: {"target": w()}, shared=False),
    BaseException: Store("attributes", _ATTRIBUTE, lambda e: {**e.__dict__, "args": e.args}, shared=False),
    contextvars.ContextVar: Store("value", _NAME, lambda v: {"value": v.get(None)}),
    FunctionType: Store("variables", _NAME, _of_function, shared=False),
    functools._lru_cache_wrapper: Store("remembered results", _SAME, _of_cached, shared=False),
    type: CLASS,
    ModuleType: MODULE,
    **dict.fromkeys(
        (
            MethodType,
            BuiltinMethodType,
            MethodWrapperType,
            functools.partial,
            property,
            staticmethod,
            classmethod,
            types.MappingProxyType,
            type({}.keys()),
            type({}.values()),
            type({}.items()),
        ),
        BEHIND,
    ),
    **dict.fromkeys((object, int, float, complex, str, bytes, slice, range, type(None), types.SimpleNamespace)),
    type(Store.word): None,  # the descriptor of a field of named tuples
}
"""What instances of a class not written in Python hold, by class; None: nothing that changes."""
_BY_NAME = {
    "numpy.ndarray": Store("contents", _ITEM, _of_array, objects=_objects_of_array),
    "numpy.void": Store("contents", _ITEM, lambda v: {0: v.tobytes()}, state=True),
    "numpy.flatiter": Store("position", _SAME, lambda i: {"base": i.base, "index": i.index}, shared=False),
    "enum.Enum": Store("attributes", _ATTRIBUTE, lambda member: dict(member.__dict__), shared=False),
    "_io.StringIO": Store("contents", _ITEM, lambda f: {0: f.getvalue(), 1: f.tell()}, state=True),
    "_io.BytesIO": Store("contents", _ITEM, lambda f: {0: f.getvalue(), 1: f.tell()}, state=True),
    "_thread._local": Store("attributes", _ATTRIBUTE, lambda t: dict(t.__dict__), True, getattr, setattr),
    **dict.fromkeys(("_thread.lock", "_thread.RLock"), Store("owner", _ITEM, lambda lock: {0: repr(lock)}, state=True)),
    "torch._C.Generator": Store("contents", _ITEM, lambda g: {0: g.get_state().numpy().tobytes()}, state=True),
    "_ctypes._CData": Store(
        "contents", _ITEM, lambda c: {0: memoryview(c).tobytes(), 1: c._objects}, objects=lambda c: [c._objects]
    ),
    "_contextvars.Context": Store("values", _ITEM, lambda c: dict(c.items())),
    "decimal.Context": _STATE,
    "torch.Tensor": Store("contents", _ITEM, _of_torch, objects=lambda x: list(x.__dict__.values())),
    "torch.nn.modules.module.Module": Store(
        "attributes", _ATTRIBUTE, lambda m: dict(m.__dict__), True, getattr, object.__setattr__
    ),
    **dict.fromkeys(("tvm_ffi.container.List", "tvm_ffi.container.Dict"), _STATE),
    "numpy.random._generator.Generator": _STATE,
    "numpy.random.mtrand.RandomState": _STATE,
}


MODEL = _BY_NAME["torch.nn.modules.module.Module"]


def is_lasting_state(store: Store) -> bool:
    """Whether what a store holds was put there by a program: not numbers of arrays, positions, remembered results."""
    named = store in _BY_NAME.values() and store not in (MODEL, _BY_NAME["enum.Enum"])
    return not (named or store.state or store.word in ("position", "remembered results"))


def _stores_of(cls: type) -> tuple[Store, ...]:
    named = next(
        (store for base in cls.__mro__ if (store := _BY_NAME.get(f"{declared_module(base)}.{base.__qualname__}"))), None
    )
    if named is not None or hasattr(cls, "__tilewright_marked__"):
        return (named or MARKED,)
    packages = module_of(cls).split(".")
    ours = packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES
    if issubclass(cls, _FIXED) or ours or getattr(cls, "__carry_immutable__", False):
        return ()
    # State outside of attributes is that of the bases not written in Python. Those that the table has are read element
    # by element; an unknown one is compared by its pickled state.
    native = next(base for base in cls.__mro__ if _is_native(base))
    native_bases = [base for base in reversed(native.__mro__[:-1]) if base in _NATIVE]
    stores = [_NATIVE[base] for base in native_bases]
    if not native_bases and issubclass(native, Iterator):
        stores = [_POSITION]
    elif not native_bases and native is not object and module_of(native) not in _FOREIGN:
        stores = [_STATE]
    if (packages[0] not in _FOREIGN and not issubclass(cls, type)) or cls is FunctionType:
        stores.insert(0, _attributes(cls))  # first: to read `__dict__` may make one, which the other store would show
    return tuple(store for store in stores if store is not None)


stores_of: Callable[[type], tuple[Store, ...]] = functools.cache(_stores_of)
"""What instances of a class hold; empty: nothing that a region could change."""


def _is_native(cls: type) -> bool:
    """Whether a class is written in another language than Python, so that its state is not in attributes."""
    loader = getattr(getattr(sys.modules.get(module_of(cls)), "__spec__", None), "loader", None)
    extension = loader is BuiltinImporter or isinstance(loader, ExtensionFileLoader)
    return extension or is_immutable(cls)


def _attributes(cls: type) -> Store | None:
    """The store of attributes, of ``__dict__`` and of ``__slots__``, read without asking ``__getattr__``."""
    slots = [
        (n, d)
        for base in cls.__mro__
        for n, d in vars(base).items()
        if isinstance(d, types.MemberDescriptorType) and not _is_native(base)
    ]
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
