"""Random programs give the same numbers, counts and findings with registers forwarded inside stretches and without."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import SimulationError
from tilewright.ir.core import Value
from tilewright.ir.types import F32, FragType, VecType
from tilewright.sim import columns, forwarding, lowering

BLOCKS, THREADS = 20, 128  # more lanes than MANY of sim/memory.py, in rows of warps
EACH = 8  # elements of a thread


class RandomProgram(Kernel):
    """Straight code, branches and loops of copies, stores to registers and sums, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(*[gptr(F32, 16)] * 3)
        self.draw = random.Random(seed)
        self.thread = self.global_id()
        # Each thread has its elements side by side, or every thread's k-th elements are neighbours.
        self.beside = self.draw.random() < 0.5
        first = self.mul(self.thread, EACH if self.beside else 1)
        self.pointers = [self.at(p, first) for p in self.args]
        self.fragments: list[Value] = []
        self.values: list[Value] = [self.cast(self.thread, F32)]
        self.holds: list[Value] = [self.compare("lt", self.thread, c(limit)) for limit in (1 << 20, 1000, 37)]
        self.body(12)
        for fragment in self.fragments:
            self.copy(fragment, 2, True)

    def element(self, tensor: int, k: int) -> Value:
        return self.at(self.pointers[tensor], k if self.beside else k * BLOCKS * THREADS)

    def copy(self, fragment: Value, tensor: int, store: bool) -> None:
        n = fragment.type.n
        registers = list(range(n))
        if self.draw.random() < 0.15:
            registers = registers[: self.draw.randint(1, n)]
        pointers = [self.element(tensor, k) for k in registers]
        predicated = self.draw.random() < 0.5
        chosen = [self.draw.choice(self.holds[:1] if self.draw.random() < 0.6 else self.holds) for _ in registers]
        attrs = {"registers": tuple((r,) for r in registers), "store": store}
        extra = {"predicated": True} if predicated else {}
        self.call(UniversalCopy(32), [fragment, *pointers, *(chosen if predicated else [])], **attrs, **extra)

    def body(self, count: int, depth: int = 0) -> None:
        steps = [self.make, self.out, self.pipe, *(self.load, self.put, self.take, self.sum) * 2]
        for _ in range(count):
            kept = len(self.fragments), len(self.values)
            if depth < 2 and self.draw.random() < 0.1:
                with self.if_(self.draw.choice(self.holds)):
                    self.body(4, depth + 1)
            elif depth < 2 and self.draw.random() < 0.1:
                self.loop(0, 2, lambda i: self.body(4, depth + 1))
            else:
                self.draw.choice(steps)()
                continue
            del self.fragments[kept[0] :], self.values[kept[1] :]  # what a region makes ends with it

    def make(self) -> None:
        self.fragments.append(self.frag_alloc(F32, self.draw.choice((1, 2, 4, EACH))))
        if self.draw.random() < 0.7:
            self.draw.choice((self.load, self.put))(self.fragments[-1])

    def pipe(self) -> None:
        """Copies in, sums, a copy out, as programs that act element by element have them."""
        n = self.draw.choice((4, EACH))
        vectors = []
        for _ in range(self.draw.randint(1, 2)):
            self.fragments.append(self.frag_alloc(F32, n))
            self.copy(self.fragments[-1], self.draw.randrange(3), False)
            vectors.append(self.frag_load(self.fragments[-1], range(n)))
        for _ in range(self.draw.randint(1, 3)):
            a, b = self.draw.choice(vectors), self.draw.choice([*vectors, self.splat(self.values[0], n)])
            vectors.append(self.binary(self.draw.choice(("add", "sub", "max")), a, b))
        self.fragments.append(self.frag_alloc(F32, n))
        self.frag_store(self.fragments[-1], vectors[-1], range(n))
        if self.draw.random() < 0.4:  # seen before and after a part of it changes
            self.values.append(self.frag_load(self.fragments[-1], range(n)))
            self.frag_store(self.fragments[-1], self.values[0], (self.draw.randrange(n),))
            self.values.append(self.frag_load(self.fragments[-1], range(n)))
            self.values.append(self.binary("sub", self.values[-1], self.values[-2]))
        self.copy(self.fragments[-1], 2, True)
        if self.draw.random() < 0.3:
            self.values += vectors

    def fragment(self) -> Value:
        if not self.fragments:
            self.make()
        return self.draw.choice(self.fragments)

    def load(self, fragment: Value | None = None) -> None:
        self.copy(fragment or self.fragment(), self.draw.randrange(3), False)

    def out(self) -> None:
        self.copy(self.fragment(), 2, True)

    def put(self, fragment: Value | None = None) -> None:
        fragment = fragment or self.fragment()
        assert isinstance(fragment.type, FragType)
        value = self.draw.choice(self.values)
        width = value.type.n if isinstance(value.type, VecType) else 1
        if width <= fragment.type.n:
            at = self.draw.randint(0, fragment.type.n - width)
            self.frag_store(fragment, value, range(at, at + width))

    def take(self) -> None:
        fragment = self.fragment()
        n, scalar = fragment.type.n, self.draw.random() < 0.3
        at = self.draw.randrange(n) if scalar or self.draw.random() < 0.2 else 0
        stop = at + 1 if scalar else n
        self.values.append(self.frag_load(fragment, range(at, stop), scalar=scalar))

    def sum(self) -> None:
        a = self.draw.choice(self.values)
        b = self.draw.choice([v for v in self.values if v.type == a.type])
        self.values.append(self.binary(self.draw.choice(("add", "sub", "max")), a, b))


def outcome(seed: int, check: str) -> tuple[Any, ...]:
    """What the program stored, what it counted, and what was found."""
    arrays = [np.random.default_rng(k).integers(-99, 99, BLOCKS * THREADS * EACH).astype(np.float32) for k in range(3)]
    found = ""
    with sim.options(check=check), sim.profile() as report:
        try:
            RandomProgram(seed).run(*arrays, grid=BLOCKS, block=THREADS)
        except SimulationError as error:
            found = str(error)
    counts = [(k.instructions, k.bytes, k.accesses) for k in report.kernels]
    return arrays[2], counts, found


def test_a_vector_that_was_loaded_does_not_change_with_the_fragment() -> None:
    k = Kernel(gptr(F32, 16), gptr(F32, 16))
    x = k.splat(k.load(k.at(k.args[0], k.tid())), 4)
    f = k.frag_alloc(F32, 4)
    k.frag_store(f, k.binary("add", x, x), range(4))
    before = k.frag_load(f, range(4))
    k.frag_store(f, k.load(k.args[0]), [0])
    out = k.at(k.args[1], k.mul(k.tid(), 8))
    k.store(out, before)
    k.store(k.at(out, 4), k.frag_load(f, range(4)))
    x, y = np.arange(1, 33, dtype=np.float32), np.zeros((32, 8), np.float32)
    k.run(x, y)
    assert (y[:, [0, 1, 5]].T == 2 * x).all() and (y[:, 4] == 1).all()


@contextlib.contextmanager
def plainly(monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(lowering, "forward", lambda *_: None)
        yield


@pytest.mark.parametrize("check", ["none", "all"])
def test_random_programs(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"columns": 0, "loads": 0}

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            used[name] += 1
            return function(*args)

        return call

    monkeypatch.setattr(columns, "_by_columns", counted("columns", columns._by_columns))
    monkeypatch.setattr(forwarding, "_same", counted("loads", forwarding._same))
    for seed in range(60 if check == "none" else 16):
        with plainly(monkeypatch):
            plain = outcome(seed, check)
        fast = outcome(seed, check)
        np.testing.assert_array_equal(fast[0], plain[0], err_msg=f"seed {seed}")
        assert fast[1:] == plain[1:], f"seed {seed}"
    assert min(used.values()) > 5, used  # the programs have what is tested
