"""Imported by the interpreters that a served program starts (:mod:`tilewright.compat.children`)."""

import importlib.machinery
import importlib.util
import os
import sys


def _next_one(folder: str) -> None:
    """Run the ``sitecustomize`` that this one hides."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _serve(folder: str, name: str) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    if package not in sys.path:
        sys.path.append(package)  # a source tree that only the parent had on its path
    try:
        from tilewright import compat
    except ImportError:
        return  # another Python, without what the package needs
    compat.install(cpu="cpu" in name.split(","), replace="replace" in name.split(","))


_folder = os.path.dirname(os.path.abspath(__file__))
_next_one(_folder)
if "TILEWRIGHT_SERVED" in os.environ:
    _serve(_folder, os.environ["TILEWRIGHT_SERVED"])
