"""``cute.cuda``: the CUDA driver's Python bindings (``cuda.bindings.driver``), of which programs take ``CUstream``."""

from typing import Any


def __getattr__(name: str) -> Any:
    from importlib import import_module

    driver = import_module("cuda.bindings.driver")
    return getattr(driver, name)
