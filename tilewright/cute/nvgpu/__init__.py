"""``cute.nvgpu``: the operations of NVIDIA GPUs, by architecture level."""

from tilewright._names import attach

attach(__name__)
