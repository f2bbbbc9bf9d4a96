"""Random programs of ldmatrix and mma.sync give the same with operands in the order of matrices and lane by lane."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.mma_sync import MmaSync
from tilewright.errors import SimulationError
from tilewright.ir.core import Value
from tilewright.ir.types import BF16, E4M3, F16, F32, TF32, MemSpace, PtrType
from tilewright.layout import Layout
from tilewright.sim import lowering, matrix_form

WARPS, BLOCKS = 4, 3
M, N, ROW = 16, 16, 64  # of each warp: two k blocks of two instructions, 32 bytes of K each; ROW bytes of K
BYTES = (M + N) * ROW
TYPES = {F16: (16, 8, 16), BF16: (16, 8, 16), TF32: (16, 8, 8), E4M3: (16, 8, 32)}


class RandomProducts(Kernel):
    """Each warp loads its A ``[M, K]`` and B ``[N, K]`` (or ``[K, N]``, transposed by ldmatrix), and adds products of
    its two k blocks to its accumulators, in a drawn order, in branches and loops, with looks at them between."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.elem = self.draw.choice((F16, F16, BF16, TF32, E4M3))
        self.transposed = self.elem.width == 16 and self.draw.random() < 0.5
        self.sums = F16 if self.elem == F16 and self.draw.random() < 0.4 else F32
        size, self.each = self.elem.bytes, 16 // self.elem.bytes  # ``each``: of a row of 16 bytes
        K = ROW // size
        super().__init__(gptr(self.elem, 16), gptr(self.sums, 16), smem_bytes=WARPS * BYTES)
        self.seen = 0
        lane, warp = self.sreg("laneid"), self.sreg("warpid")
        self.odd = self.compare("eq", self.binary("and", warp, c(1)), c(1))
        place = self.mul(warp, BYTES // size)
        smem = self.smem_alloc(0, WARPS * BYTES, 128, self.elem)
        for k in range(BYTES // size // 32):  # shared memory of the warp, as it is in global memory
            at = self.add(place, self.add(lane, 32 * k))
            self.store(self.at(smem, at), self.load(self.at(self.args[0], at)))
        self.sync()
        i, j = self.binary("and", lane, c(7)), self.binary("shr", lane, c(3))
        low, high = self.binary("and", j, c(1)), self.binary("shr", j, c(1))
        row, column = self.add(self.mul(low, 8), i), self.mul(high, self.each)
        self.a_rows = self.at(smem, self.add(place, self.add(self.mul(row, K), column)))
        if self.transposed:
            first = self.add(self.mul(self.add(self.mul(low, 8), i), N), self.mul(high, 8))
        else:
            first = self.add(self.mul(self.add(self.mul(high, 8), i), K), self.mul(low, self.each))
        self.b_rows = self.at(smem, self.add(self.add(place, first), M * K))
        self.a, self.b = self.frag_alloc(self.elem, 2 * self.each), self.frag_alloc(self.elem, 2 * self.each)
        self.d = self.frag_alloc(self.sums, 8)
        start = 0.0 if self.draw.random() < 0.5 else 5.0
        self.frag_store(self.d, self.splat(c(start, self.sums), 8), range(8))
        self.out = self.at(self.args[1], self.mul(self.global_id(), 8 * 64))
        self.loads(0), self.loads(1)
        self.body(10)
        self.look()

    def loads(self, k: int) -> None:
        registers = (tuple(range(self.each * k, self.each * (k + 1))),)
        self.call(LdMatrix(4), [self.a, self.moved(self.a_rows, 2 * self.each * k)], registers=registers, store=False)
        b = self.moved(self.b_rows, 2 * self.each * k * (N if self.transposed else 1))
        self.call(LdMatrix(4, self.transposed), [self.b, b], registers=registers, store=False)

    def moved(self, pointer: Value, elements: int) -> Value:
        """Moved to a row of 16 bytes, which is known to be aligned."""
        kind = PtrType(self.elem, MemSpace.SMEM, 16)
        return self.emit("ptr.add", (pointer, c(elements)), (kind,)).result

    def product(self, k: int) -> None:
        atom, n = MmaSync(80, TYPES[self.elem], self.sums, self.elem, self.elem), self.each
        d, a = Layout((4, 1, 2), (1, 0, 4)), Layout((n, 1, 1), (1, 0, 0))
        b = Layout((n // 2, 2, 1), (1, n // 2, 0))
        layouts = {"d_layout": d, "a_layout": a, "b_layout": b, "d_offset": 0, "a_offset": n * k, "b_offset": n * k}
        self.call(atom, [self.d, self.a, self.b], **layouts)

    def look(self) -> None:
        self.store(self.at(self.out, 8 * self.seen), self.frag_load(self.d, range(8)))
        self.seen += 1

    def write(self) -> None:
        self.frag_store(self.d, self.splat(c(float(self.draw.randint(-3, 3)), self.sums), 2), (2, 3))

    def body(self, count: int, depth: int = 0) -> None:
        products = [lambda: self.product(0), lambda: self.product(1)] * 3
        for _ in range(count):
            if depth < 2 and self.draw.random() < 0.15:
                with self.if_(self.odd):
                    self.body(3, depth + 1)
                    if self.draw.random() < 0.5:
                        self.bar_sync(1, 64)  # the two odd warps go on as a group of their own
            elif depth < 2 and self.draw.random() < 0.15:
                self.loop(0, 2, lambda i: self.body(3, depth + 1))
            else:
                k = self.draw.randrange(2)
                self.draw.choice([*products, lambda k=k: self.loads(k), self.look, self.write])()


def outcome(seed: int, check: str, schedule: str) -> tuple[Any, ...]:
    """What was stored, what was counted and what was found, all numbers small integers."""
    program = RandomProducts(seed)
    numbers = np.random.default_rng(seed).integers(-4, 5, WARPS * BYTES // program.elem.bytes)
    source, out = numbers.astype(program.elem.dtype), np.zeros((BLOCKS * WARPS * 32, 64, 8), program.sums.dtype)
    found = ""
    with sim.options(check=check, schedule=schedule), sim.profile() as report:
        try:
            program.run(source, out, grid=BLOCKS, block=32 * WARPS)
        except SimulationError as error:
            found = str(error)
    counts = [(k.instructions, k.bytes, k.accesses, k.wavefronts) for k in report.kernels]
    return out, counts, found


@pytest.mark.parametrize("check", ["none", "all"])
def test_random_programs(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forms: list[matrix_form.MatrixForms] = []
    use = lowering.use_matrices

    def noted(*args: Any) -> matrix_form.MatrixForms:
        forms.append(use(*args))
        return forms[-1]

    monkeypatch.setattr(lowering, "use_matrices", noted)
    for seed in range(40 if check == "none" else 12):
        schedule = "seeded" if seed % 3 else "lockstep"
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "use_matrices", lambda *_: matrix_form.MatrixForms({}, {}, {}))
            plain = outcome(seed, check, schedule)
        fast = outcome(seed, check, schedule)
        np.testing.assert_array_equal(fast[0], plain[0], err_msg=f"seed {seed}")
        assert fast[1:] == plain[1:], f"seed {seed}"
        assert plain[0].any()
    assert all(len(form.operands) == 2 for form in forms)
    assert sum(len(form.pending) for form in forms) > len(forms) / 2
