"""``cute.runtime``: arrays, pointers and streams of the host as arguments of jit functions."""

from tilewright._lazy import unknown_names
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack
from tilewright.lang.arguments.fake import make_fake_compact_tensor, make_fake_stream, make_fake_tensor
from tilewright.lang.tensors.pointer import HostPointer, Pointer, make_ptr

__all__ = [
    "HostPointer",
    "HostTensor",
    "Pointer",
    "from_dlpack",
    "make_fake_compact_tensor",
    "make_fake_stream",
    "make_fake_tensor",
    "make_ptr",
]

unknown_names(__name__)
