"""``cutlass.utils.hopper_helpers``: the older name of :mod:`tilewright.utils.sm90`."""

from tilewright._names import attach

attach(__name__)
