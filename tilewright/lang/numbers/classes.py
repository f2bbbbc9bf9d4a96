"""The numeric class of each scalar type."""

from __future__ import annotations

from typing import Any

from tilewright.ir.types import ScalarType

CLASS_OF: dict[ScalarType, Any] = {}
"""Filled as the classes are made."""
