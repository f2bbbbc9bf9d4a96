"""The results of tuning, on disk: one file for each kind of GPU, driver and version of the library.

A file is a checksum and, on the next line, JSON. A file whose checksum does not hold counts as empty, as does one of
other users (``own_files``). Its contents can only choose among the sizes of known kernels.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import tilewright
from tilewright import own_files
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import operand_of
from tilewright.gemm.config import Major
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.lang.tools.hardware import HardwareInfo

OWN_FOLDER = "tilewright-tuned"
_LOCK = threading.Lock()
_FOLLOWERS: list[Callable[[], None]] = []
_READ: dict[Path, dict[str, Candidate]] = {}


def problem_key(problem: Problem) -> str | None:
    """The key of a tuned result: types, extents and majors; of matrices whose rows do not begin at multiples of 16
    bytes, at which multiples they do. None where rows or products are given by index or pointer."""
    if problem.indirect is not None:
        return None
    parts = ["x".join(map(str, problem.shape))]
    for matrix in (problem.A, problem.B.transposed(), problem.D):
        # Of A and B, rows may end anywhere; D's are written in whole accesses.
        operand = operand_of((matrix,), {Major.K: 128, Major.MN: 128}, whole=matrix is problem.D)
        parts.append(f"{operand.dtype.__name__} {operand.major.value}")
        if operand.copy_bits != 128:
            parts.append(f"{operand.copy_bits // 8}B")
    return " ".join(parts)


def find(problem: Problem) -> Candidate | None:
    """The fastest way that tuning found for the problem on this computer's GPU; None if it was not tuned."""
    by_problem = tuned()
    if not by_problem:
        return None
    key = problem_key(problem)
    return None if key is None else by_problem.get(key)


def keep(key: str, candidate: Candidate) -> Path:
    """Store a result and return the file. Raises ArgumentError where it cannot be written."""
    path = place()
    with _LOCK:
        stored = {**read(path), key: candidate}  # another process may have written in the meantime
        body = json.dumps({key: one.to_json() for key, one in sorted(stored.items())}, indent=1).encode()
        try:
            own_files.write(path, checksum(path.name, body) + b"\n" + body)
        except OSError as error:
            raise ArgumentError(f"what tuning found cannot be written to {path}: {error}") from None
        _READ[path.parent] = stored
    for forget in _FOLLOWERS:
        forget()
    return path


def when_kept(forget: Callable[[], None]) -> None:
    """Call ``forget`` whenever a result is stored: plans that were made before may not be the fastest any more."""
    _FOLLOWERS.append(forget)


def tuned() -> dict[str, Candidate]:
    """All results for this GPU, read once."""
    folder = own_files.folder(OWN_FOLDER)
    remembered = _READ.get(folder)
    if remembered is None:
        with _LOCK:
            remembered = _READ[folder] = read(place())
    return remembered


def may_have(problem: Callable[[], Problem]) -> bool:
    """Whether tuning found something for a problem, which is made only where anything was found at all, as far as that
    was read: :func:`tuned` takes 9 us to look at the environment, and a folder that moves meanwhile is noticed by the
    next product that is planned at length."""
    return (not _READ or any(_READ.values())) and find(problem()) is not None


def read(path: Path) -> dict[str, Candidate]:
    data = own_files.read(path)
    if data is None:
        return {}
    check, _, body = data.partition(b"\n")
    if check != checksum(path.name, body):
        return {}
    candidates = {}
    listed: Any = json.loads(body)
    for key, one in listed.items():
        with contextlib.suppress(ArgumentError):
            candidates[str(key)] = Candidate.from_json(one)
    return candidates


def place() -> Path:
    return own_files.folder(OWN_FOLDER) / f"{gpu_digest()}.json"


@cache
def gpu_digest() -> str:
    """Digest of everything besides the problem that decides which candidate is fastest."""
    info = HardwareInfo()
    facts = [library_version(), info.get_device_name(), str(info.get_driver_version())]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def library_version() -> str:
    """The version of the installed package; in a source tree that is not installed, the one written in it."""
    try:
        return importlib.metadata.version("tilewright")
    except importlib.metadata.PackageNotFoundError:
        return f"{tilewright.__version__} (source)"


def checksum(name: str, body: bytes) -> bytes:
    """Over the file's name, too: a file that was renamed is not taken for another GPU's."""
    return hashlib.sha256(name.encode() + b"\n" + body).hexdigest().encode()
