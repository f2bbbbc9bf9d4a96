"""Staged programs kept on the disk, so that a process need not stage what one before it has staged.

Only programs of the package's own functions are kept: what they become is decided by the package's sources and by a key
of plain values, and both are in the name of the entry. A user's function may reach anything, so it is staged in each
process. ``TILEWRIGHT_STORED_PROGRAMS=0`` switches this off, for work on the package itself.

An entry is a pickle. Like the machine code beside it, it is taken only where :mod:`tilewright.own_files` finds that no
other user could have written it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilewright
from tilewright import disk_cache
from tilewright.ir.core import Function
from tilewright.lang.arguments.kinds import Argument
from tilewright.lang.launch.collector import put_aside, without_collector
from tilewright.lang.launch.stage import STARTED, Program
from tilewright.lang.staging.objects import StaticKey
from tilewright.lang.staging.values import Spec

ROOT = Path(tilewright.__file__).parent
PLAIN = (type(None), bool, int, float, str, bytes)
SWITCH = "TILEWRIGHT_STORED_PROGRAMS"


class Undescribed(Exception):
    """A value of which only the identity is known."""


def name_of(key: Any) -> str | None:
    """The name of the program that ``key`` decides; None where none is kept: ``key`` holds something that another
    process could not compare."""
    if os.environ.get(SWITCH) == "0" or disk_cache.limit() <= 0:
        return None
    # The environment may change what is staged; where files are kept does not.
    settings = sorted(x for x in os.environ.items() if x[0].startswith(("TILEWRIGHT_", "CUTE_DSL_")))
    try:
        what = described((key, [x for x in settings if not x[0].startswith("TILEWRIGHT_CACHE_")]))
        return disk_cache.key("program", sources(), what)
    except Undescribed:
        return None


@functools.cache
def sources() -> str:
    """The digest of what turns a key into a program: the package's sources, where they are (errors name their lines),
    and the Python that runs them. Raises Undescribed where a source was written after this process imported it."""
    digest = hashlib.sha256(f"{ROOT}\n{sys.version}\n{np.__version__}\n".encode())
    # By os.walk: pathlib takes longer than the digest.
    listed = (os.path.join(folder, name) for folder, _, names in os.walk(ROOT) for name in names)
    for path in sorted(path for path in listed if path.endswith(".py")):
        with open(path, "rb") as file:
            text = file.read()
            if os.fstat(file.fileno()).st_mtime_ns > STARTED:
                raise Undescribed
        digest.update(f"{path}\n{len(text)}\n".encode() + text)
    return digest.hexdigest()


def described(value: Any) -> str:
    """A text that differs for any two values that differ. Raises Undescribed for objects of others than the package,
    and for functions made inside of functions, which hold more than their name says."""
    kind = type(value)
    if kind in PLAIN:
        return f"{kind.__name__} {value!r}"
    if isinstance(value, StaticKey):
        return described(value.value)
    if isinstance(value, type):
        return f"class {own_name(value)}"
    if isinstance(value, enum.Enum):
        return f"{own_name(kind)}.{value.name}"
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join(map(described, value))})"
    if kind is dict:
        return f"dict({', '.join(map(described, value.items()))})"
    if dataclasses.is_dataclass(value):
        fields = (f"{field.name}={described(getattr(value, field.name))}" for field in dataclasses.fields(value))
        return f"{own_name(kind)}({', '.join(fields)})"
    raise Undescribed


def own_name(cls: type) -> str:
    """The name under which a class of the package is found in every process."""
    module = sys.modules.get(cls.__module__)
    if cls.__module__.partition(".")[0] not in ("tilewright", "builtins"):
        raise Undescribed
    named: Any = functools.reduce(lambda x, name: getattr(x, name, None), cls.__qualname__.split("."), module)
    if named is not cls:
        raise Undescribed
    return f"{cls.__module__}.{cls.__qualname__}"


def program(name: str | None, arguments: list[Argument], stage: Callable[[], Program]) -> Program:
    """Read the program ``name`` for these ``arguments``. If the disk has no such program, stage it and write it."""
    if name is None:
        return stage()
    with without_collector():
        entry = disk_cache.read(name)
        is_there = entry is not None and "program" in entry
        if entry is not None and is_there:
            host, result = pickle.loads(entry["program"])
            made = Program(host, kernels_of(host), arguments, result, [])
            put_aside()
        else:
            made = stage()
            keep(name, made.host, made.result)
    for number, kernel in enumerate(kernels_of(made.host)):
        kernel.digest, kernel.known = f"{name}.{number}", is_there
    return made


def keep(name: str, host: Function, result: Spec) -> None:
    """Write an entry, unless the program holds something that cannot be written."""
    try:
        data = pickle.dumps((host, result), protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):
        return
    disk_cache.write(name, {"program": data})


def kernels_of(host: Function) -> list[Function]:
    """The kernels that a host function launches, in the order of their first launch."""
    return list(dict.fromkeys(op.attrs["kernel"] for op in host.walk() if op.opcode == "launch"))
