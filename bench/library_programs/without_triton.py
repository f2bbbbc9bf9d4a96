"""Libraries import Triton beside these kernels, which do not use it: without a GPU it need not be there."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

import torch
import torch._dynamo
import torch._inductor.utils  # asks for Triton, and must find that there is none

if find_spec("triton") is None:
    triton = MagicMock(__spec__=None, FileCacheManager=object, __version__=torch.__version__)
    for path in ("", ".runtime", ".runtime.cache", ".runtime.jit", ".testing", ".language"):
        sys.modules[f"triton{path}"] = triton
