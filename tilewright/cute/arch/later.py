"""Single instructions that are not here yet under these names."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "prefetch sext_unpacked_i4_i8_intrinsic",
    public="cute.arch",
    why="it is an instruction that Tilewright has not built",
    instead={
        "prefetch": "cute.prefetch (tensors of TMA), or a load whose value is not used",
        "sext_unpacked_i4_i8_intrinsic": "shifts: (x << 28) >> 28 of an Int32 extends the sign of four bits",
    },
)
