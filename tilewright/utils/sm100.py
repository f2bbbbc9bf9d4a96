"""``cutlass.utils.sm100``: another name of :mod:`tilewright.utils.blackwell_helpers`."""

from tilewright.utils.blackwell_helpers import __all__ as __all__
from tilewright.utils.blackwell_helpers import __getattr__ as __getattr__
