"""Random kernels for the differential test of the race checker: accesses, and synchronisation that may be missing."""

from __future__ import annotations

import random

HEAD = """\
import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import cpasync


@cute.kernel
def kernel(x: cute.Tensor, g: cute.Tensor, flags: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 64, alignment=16), cute.make_layout(64))
    quads = cute.make_tensor(s.iterator, cute.make_layout((4, 16)))
    full = cute.arch.alloc_smem(cutlass.Int64, 16)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Int32, num_bits_per_copy=128)
    if t == 0:
        for k in cutlass.range_constexpr(16):
            cute.arch.mbarrier_init(full + k, 1 if k % 2 else 32)
    cute.arch.sync_threads()
"""


class Drawn:
    """``lines``: of the kernel's body; ``threads`` and ``blocks`` of its launch."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.threads, self.blocks = self.draw.choice([64, 96]), self.draw.choice([1, 1, 2])
        self.lines: list[str] = []
        self.used = 0  # barrier ids, mbarriers and flags: each is used once
        self.draw_lines()

    def draw_lines(self) -> None:
        kinds = [
            self.write,
            self.read,
            self.write,
            self.read,
            self.block,
            self.block,
            self.warp,
            self.named,
            self.arrive,
            self.mbarrier,
            self.flag,
            self.flag,
            self.atomic,
            self.copy,
        ]
        for _ in range(self.draw.randint(4, 12)):
            self.draw.choice(kinds)()

    def text(self) -> str:
        return HEAD + "".join(f"    {line}\n" for line in self.lines)

    def add(self, *lines: str) -> None:
        self.lines += lines

    def guarded(self, line: str) -> None:
        guards = ["", "", "t < 32", "t >= 32", "t % 32 == 0", "t == 5", "t < 40"] + ["b == 0", "b == 1"] * (
            self.blocks > 1
        )
        guard = self.draw.choice(guards)
        self.add(*([f"if {guard}:", f"    {line}"] if guard else [line]))

    def place(self) -> str:
        memory, step, first = self.draw.choice("sssg"), self.draw.choice([1, 1, 3]), self.draw.choice([0, 0, 1, 32])
        return f"{memory}[(t * {step} + {first}) % 64]"

    def write(self) -> None:
        self.guarded(f"{self.place()} = t + b * 1000 + {10000 * (len(self.lines) + 1)}")

    def read(self) -> None:
        self.guarded(f"y[b, t] = {self.place()}")

    def block(self) -> None:
        self.add("cute.arch.sync_threads()")

    def warp(self) -> None:
        self.add("cute.arch.sync_warp()")

    def number(self) -> int:
        self.used += 1
        return self.used

    def named(self) -> None:
        count = self.draw.choice([64, self.threads])
        self.add(f"if t < {count}:", f"    cute.arch.barrier(barrier_id={self.number()}, number_of_threads={count})")

    def arrive(self) -> None:
        one, other = self.draw.sample(["arrive", ""], 2)
        names = [f"cute.arch.barrier{'_arrive' if side else ''}" for side in (one, other)]
        what = f"(barrier_id={self.number()}, number_of_threads=64)"
        self.add("if t < 32:", f"    {names[0]}{what}", "elif t < 64:", f"    {names[1]}{what}")

    def mbarrier(self) -> None:
        k = self.number()
        if k % 2 and self.draw.random() < 0.5:
            self.add("cute.arch.sync_warp()")
        arrives = "t == 0" if k % 2 else "t < 32"
        waits = self.draw.choice(["t >= 32", "t == 40", "t >= 16"])
        self.add(f"if {arrives}:", f"    cute.arch.mbarrier_arrive(full + {k})")
        self.add(f"if {waits}:", f"    cute.arch.mbarrier_wait(full + {k}, 0)")

    def flag(self) -> None:
        k, draw = self.number(), self.draw
        scope = draw.choice(["gpu", "gpu", "cta"])
        self.add(*["cute.arch.sync_threads()"] * (draw.random() < 0.5))
        self.add(*[f'cute.arch.threadfence("{draw.choice(["gpu", "cta"])}")'] * (draw.random() < 0.4))
        sides = ["t == 0 and b == 0", f"t == {draw.choice([0, 1, 40])} and b == {self.blocks - 1}"]
        store, load = draw.choice(["release", "relaxed"]), draw.choice(["acquire", "relaxed"])
        self.add(f"if {sides[0]}:")
        self.add(f'    cute.arch.store(flags.iterator + {k}, cutlass.Int32(1), sem="{store}", scope="{scope}")')
        self.add(f"if {sides[1]}:")
        self.add(f'    while cute.arch.load(flags.iterator + {k}, sem="{load}", scope="{scope}") == 0:', "        pass")
        self.add(*['cute.arch.threadfence("gpu")'] * (draw.random() < 0.4))
        self.add(*["cute.arch.sync_threads()"] * (draw.random() < 0.5))

    def atomic(self) -> None:
        memory, scope = self.draw.choice([("s", "cta"), ("g", "cta"), ("g", "gpu")])
        self.guarded(f'cute.arch.atomic_add({memory}.iterator + t % 8, cutlass.Int32(1), scope="{scope}")')

    def copy(self) -> None:
        draw = self.draw
        target = f"quads[None, (t + {draw.choice([0, 1])}) % 16]"
        self.add("if t < 16:", f"    cute.copy(atom, x[None, (t + {len(self.lines) + 2}) % 16], {target})")
        for line in ("commit_group()", f"wait_group({draw.choice([0, 0, 1])})"):
            self.add(*[f"cute.arch.cp_async_{line}"] * (draw.random() < 0.8))


SIDES = ("t % 32 < 16", "t % 32 >= 16", "t % 2 == 0", "t == 5", "t % 32 < 8", "t < 32")


class DrawnLanes(Drawn):
    """Lanes that act apart: some write or copy, meet at ``sync_warp`` with a mask, at an mbarrier or by waiting for
    groups of copies, and some read."""

    def draw_lines(self) -> None:
        self.blocks = 1
        meet = [self.masked, self.masked, self.warp, self.alone]
        for _ in range(self.draw.choice([1, 1, 2])):
            copies = self.draw.random() < 0.4
            (self.some_copy if copies else self.some_write)()
            for _ in range(self.draw.randint(1, 4)):
                self.draw.choice([*meet, *[self.wait, self.wait, self.commit] * copies])()
            self.draw.choice([self.some_read, self.some_read, self.some_write])()

    def some(self, line: str) -> None:
        self.add(f"if {self.draw.choice(SIDES)}:", f"    {line}")

    def at(self) -> str:
        return f"s[t // 32 * 32 + (t + {self.draw.choice([0, 0, 1, 8, 16])}) % 32]"

    def some_write(self) -> None:
        self.some(f"{self.at()} = t + {100 * (len(self.lines) + 1)}")

    def some_read(self) -> None:
        self.some(f"y[b, t] = {self.at()}")

    def some_copy(self) -> None:
        side = self.draw.choice(["t % 32 < 8", "t % 32 >= 24", "t == 5"])  # each lane has 16 bytes of its own
        to = f"(t // 32 * 8 + t % 8 + {self.draw.choice([0, 4])}) % 16"
        self.add(f"if {side}:", f"    cute.copy(atom, x[None, t % 16], quads[None, {to}])")
        self.draw.choice([self.commit, self.commit, lambda: None])()

    def masked(self) -> None:
        mask = self.draw.choice([0xFFFF, 0xFFFF0000, 0xFF, 0x55555555, 0x20, 0xFFFFFFFF])
        self.add(f"if 0x{mask:x} >> (t % 32) & 1 != 0:", f"    cute.arch.sync_warp(0x{mask:x})")

    def commit(self) -> None:
        self.draw.choice([self.add, self.add, self.some])("cute.arch.cp_async_commit_group()")

    def wait(self) -> None:
        self.draw.choice([self.add, self.add, self.some])(
            f"cute.arch.cp_async_wait_group({self.draw.choice([0, 0, 1])})"
        )

    def alone(self) -> None:
        """One lane arrives; some or all wait."""
        k = 2 * self.number() - 1
        lane = self.draw.choice([0, 5, 16])
        waits = self.draw.choice(["t >= 0", "t % 32 == 7", "t % 32 >= 16"])
        self.add(f"if t == {lane}:", f"    cute.arch.mbarrier_arrive(full + {k})")
        self.add(f"if {waits}:", f"    cute.arch.mbarrier_wait(full + {k}, 0)")


class DrawnBarriers(Drawn):
    """Warps that meet at several named barriers in one statement: each arrives at one of them and waits at one of them.
    Two warps write a row each, before or after that, and read one of the rows."""

    def draw_lines(self) -> None:
        self.threads, draw = 64, self.draw
        for _ in range(draw.randint(1, 2)):
            first, second = self.number(), self.number()
            ids = [f"{first} + t // 32", f"{second} - t // 32", str(first)]
            arrives, waits = draw.choice(ids[:2]), draw.choice(ids[:2])
            if draw.random() < 0.3:
                arrives = waits = ids[2]
            self.add(f"s[t] = t + {100 * first}")
            if arrives != waits:
                self.add(f"cute.arch.barrier_arrive(barrier_id={arrives}, number_of_threads=64)")
            size = 64 if arrives != waits or waits == ids[2] else 32
            self.add(f"cute.arch.barrier(barrier_id={waits}, number_of_threads={size})")
            self.add(f"y[b, t] = s[t ^ {draw.choice([0, 32, 32])}]")
