"""Observers hear of a launch's events in the order in which they happen."""

import gc
import weakref

import numpy as np

import tilewright.cute as cute
from tilewright import sim
from tilewright.sim.events import Observer, observing


class Heard(Observer):
    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self, launch):
        self.events.append("begin")

    def access(self, verb, buffer, group, off, access, mask, values):
        written = "" if values is None else f" {np.ravel(values)[0]}"
        self.events.append(f"{verb} {buffer.word} {off.size} x {access.nbytes}{written}")

    def barrier(self, group, rows, keys, target, waits):
        self.events.append(f"barrier {keys.tolist()} {waits}")

    def resumes(self, group, wait):
        self.events.append("resumes")

    def ordered(self, group, op):
        self.events.append(op.attrs["atom"].mnemonic())

    def left(self, group):
        self.events.append("left")

    def end(self, launch):
        self.events.append("end")


@cute.kernel
def reverse(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64), cute.make_layout(64))
    s[t] = x[t]
    cute.arch.sync_threads()
    y[t] = s[63 - t]
    cute.arch.fence_acq_rel_gpu()


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    reverse(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def test_events_come_in_order() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    heard: list[Heard] = []

    def make(name, config):
        heard.append(Heard())
        return heard[-1]

    with sim.options(schedule="lockstep"), observing(make):
        run(x, y)
    assert (y == x[::-1]).all()
    assert heard[0].events == [
        "begin",
        "load global 64 x 4",
        "store shared 64 x 4 0.0",
        "barrier [0, 0] True",
        "resumes",
        "load shared 64 x 4",
        "store global 64 x 4 63.0",
        "fence.acq_rel.gpu",
        "left",
        "end",
    ]
    assert len(heard) == 1
    run(x, y)  # no observer is left
    assert len(heard) == 1


class Holding(Observer):
    """Weak references to the registers of groups when they end, and to what shared memory is in."""

    def __init__(self) -> None:
        self.held: list = []

    def wave(self, wave):
        self.held.append(weakref.ref(wave.shared.bytes))

    def left(self, group):
        self.held += [weakref.ref(v) for v in group.slots if isinstance(v, np.ndarray) and v.ndim and v.base is None]


def test_a_launch_leaves_no_arrays_to_the_collector_of_garbage():
    """With observers of all kinds: they, waves and groups hold each other."""
    x, y, holding = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), Holding()
    gc.disable()
    try:
        with observing(lambda name, config: holding), sim.options(check="all"):
            run(x, y)
        assert len(holding.held) > 2 and not [ref for ref in holding.held if ref() is not None]
    finally:
        gc.enable()
