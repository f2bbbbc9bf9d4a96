"""Tensor maps that a kernel keeps in global memory and changes as it goes on to other tensors (grouped GEMM)."""

from __future__ import annotations


