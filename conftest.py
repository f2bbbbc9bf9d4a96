"""The names that examples in docstrings take for granted, as NumPy's examples do with ``np``.

They are imported in the fixture: ``tests/conftest.py`` sets the number of NumPy's threads before NumPy is imported.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    np = pytest.importorskip("numpy")
    from tilewright import cute
    from tilewright.cute import arch
    from tilewright.testing import per_thread

    doctest_namespace.update(np=np, cute=cute, arch=arch, per_thread=per_thread)
