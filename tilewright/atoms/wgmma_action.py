"""What ``wgmma`` does on the simulator. When a warp waits for it (see ``warpgroups.py``), it reads shared memory
through its descriptors, as the hardware does, multiplies, and adds to the accumulators.

Instructions of one group that add to the same accumulators are multiplied together, and all warpgroups of which the
same instructions are due are one batched product. Sums are in float32 (integers: exact); the hardware adds the products
of 8-bit floats with fewer bits (about 14 of the mantissa), which is not modelled.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import WGMMA
from tilewright.atoms.matrix_product import added, multiplied, rounds_each_step
from tilewright.atoms.matrix_tiles import FIELD, addresses, matrices
from tilewright.atoms.mma import active_warps
from tilewright.atoms.sparsity import chunk_of, metadata_layout, misplaced, stored_places, written_out
from tilewright.atoms.tables import offsets, owners
from tilewright.atoms.warpgroups import Array, Issue, Warpgroup, WarpgroupOperation, Warpgroups
from tilewright.atoms.wgmma_registers import AccumulatorRegisters, deliver, into_flight
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.target import WARPGROUP_WARPS
from tilewright.ir.types import ScalarType
from tilewright.layout.smem_atoms import BYTE_SWIZZLES

if TYPE_CHECKING:
    from tilewright.atoms.wgmma import WgmmaAtom


# -- issue, commit, wait -----------------------------------------------------------------------------------------------


def issue(atom: WgmmaAtom, lanes: Lanes, op: Op, operands: list[Any]) -> None:
    """Note the instruction with its warpgroups; their accumulators are in flight from now on."""
    d, a, b, accumulate, *metadata = operands
    _check_together(atom, lanes)
    reads_a = atom.reads_shared("A")
    words_a = _by_warp(atom, lanes, "the descriptor of A", a) if reads_a else None
    words_b = _by_warp(atom, lanes, "the descriptor of B", b)
    keep = _by_warp(atom, lanes, "whether it accumulates", accumulate)
    issued = Issue(atom, op, lanes, lanes.issued(), words_a, words_b)
    attrs = op.attrs
    key = AccumulatorRegisters.of(atom.shape_mnk[1], atom.type_d, attrs["d_layout"], attrs["d_offset"])
    fresh: list[tuple[int, WarpgroupOperation, int]] = []
    places = lanes.beside(Warpgroups).places(lanes, atom.mnemonic())
    for row, group, place in places:
        step, taken = group.begin(place, op, bool(keep[row]), key, d, 32 * row)
        _check_same(atom, lanes, step, op, bool(keep[row]), place)
        step.issues[place], step.rows[place] = issued, row
        if taken:
            fresh.append((row, step, place))
        elif step.accumulators.held[place].array is not d:  # type: ignore[union-attr]  # begin has set them
            raise _differs(atom, lanes, "the fragment of the accumulators")
    if fresh:
        for held, (_, step, place) in zip(lanes.hold(d, np.array([row for row, *_ in fresh])), fresh, strict=True):
            step.accumulators.held[place] = held
            into_flight(step.accumulators, place, step.keep)
    rows = np.array([row for row, *_ in places])
    for slot, registers in [*([] if reads_a else [("a", a)]), *(("e", e) for e in metadata)]:
        for held, (_, group, place) in zip(lanes.hold(registers, rows), places, strict=True):
            getattr(group.steps[group.issued[place] - group.done - 1], slot)[place] = held


def _check_together(atom: WgmmaAtom, lanes: Lanes) -> None:
    """A Fault where some warps of a warpgroup that is here as a whole do not execute the instruction."""
    active = active_warps(lanes, atom)
    if active is None:
        return
    ids, firsts = np.asarray(lanes.sreg("warpid"))[::32], lanes.warp_numbers()
    firsts = firsts - ids % WARPGROUP_WARPS
    some, none = np.unique(firsts[active]), np.unique(firsts[~active])
    torn = np.intersect1d(some, none)
    if torn.size:
        there = [int(w) for w in ids[active & (firsts == torn[0])]]
        raise lanes.fault(
            f"{atom.mnemonic()}: only warps {there} of a warpgroup execute it, but all four must",
            lanes.active(),
            "branch by warpgroup (warp_idx // 4), not by warp",
        )


def _check_same(atom: WgmmaAtom, lanes: Lanes, step: WarpgroupOperation, op: Op, keep: bool, place: int) -> None:
    if step.op is not op:
        raise lanes.fault(
            f"{atom.mnemonic()}: warp {place} of a warpgroup executes it where others of the warpgroup execute the one "
            f"at {step.op.loc}, but all four must execute the same instructions in the same order",
            None,
            "branch by warpgroup (warp_idx // 4), not by warp",
        )
    if step.keep is not keep:
        raise _differs(atom, lanes, "whether it accumulates")


def _differs(atom: WgmmaAtom, lanes: Lanes, what: str) -> Exception:
    return lanes.fault(
        f"{atom.mnemonic()}: {what} differs among the threads of a warpgroup",
        None,
        "compute it from numbers that are equal in all threads of a warpgroup",
    )


def _by_warp(atom: WgmmaAtom, lanes: Lanes, what: str, value: Any) -> Array:
    """``[warps]``: an operand that all lanes of a warp must agree on."""
    array = np.asarray(value)
    if array.ndim == 0:
        return np.full(lanes.warps, array)
    by_lane = array.reshape(lanes.warps, 32)
    wrong = by_lane != by_lane[:, :1]
    if wrong.any() and (lanes.mask is None or wrong[lanes.mask.reshape(-1, 32)].any()):
        raise _differs(atom, lanes, what)
    return by_lane[:, 0]


def commit(lanes: Lanes) -> None:
    for _, group, place in lanes.beside(Warpgroups).places(lanes):
        group.commit(place)


def wait(lanes: Lanes, pending: int) -> None:
    """Make each warp wait until all but its newest ``pending`` groups are done: as soon as all four warps have issued
    them."""
    places = lanes.beside(Warpgroups).places(lanes)
    rows = sorted(
        ((row, group, place, group.boundary(place, pending)) for row, group, place in places), key=lambda r: r[3]
    )
    count = lanes.warps

    def ready() -> Array:
        due = {id(group): (group, n) for _, group, _, n in rows if group.done < n <= min(group.issued)}
        if due:
            land(list(due.values()))
        every = np.ones(count, bool)
        for row, group, _, n in rows:
            every[row] = group.done >= n
        deliver([(group, place, n) for row, group, place, n in rows if every[row]])
        return every

    def late(row: int) -> list[int]:
        return next(group.late(n) for r, group, _, n in rows if r == row)

    def reason(row: int) -> str:
        return f"warps {late(row)} of the warpgroup to issue the wgmma of the group"

    def missing(row: int) -> list[tuple[int, int]]:
        rank = int(np.asarray(lanes.sreg("cluster_ctarank"))[32 * row])
        return [(rank, warp) for warp in late(row)]

    lanes.wait_until(ready, reason, missing)


# -- the operations ----------------------------------------------------------------------------------------------------


def land(due: list[tuple[Warpgroup, int]]) -> None:
    """Carry out the operations of each warpgroup up to its count."""
    taken = [(group, group.take(count)) for group, count in due]
    taken.sort(key=lambda t: [id(step.op) for step in t[1]])
    for _, same in groupby(taken, key=_signature):
        groups, steps = zip(*same, strict=True)
        for run in _runs(list(steps)):
            first = run[0][0].issues[0]
            assert first is not None
            first.act(_Product(list(groups), run))


def _signature(taken: tuple[Warpgroup, list[WarpgroupOperation]]) -> list[Any]:
    """What warpgroups must have in common so that their operations can be multiplied as one batch."""
    steps = taken[1]
    return [(id(s.op), s.keep, s.group - steps[0].group, steps[0].accumulators is s.accumulators) for s in steps]


def _runs(steps: list[list[WarpgroupOperation]]) -> list[list[list[WarpgroupOperation]]]:
    """Each warpgroup's operations cut, in the same way, into those that are multiplied together: of one group, all of
    which but the first add to the accumulators of the first."""
    cuts = [0]
    for k in range(1, len(steps[0])):
        atom = steps[0][k].op.attrs["atom"]
        joins = all(
            s[k].keep
            and s[k].group == s[k - 1].group
            and s[k].accumulators is s[k - 1].accumulators
            and s[k].op.attrs["atom"] == s[k - 1].op.attrs["atom"]
            for s in steps
        )
        if rounds_each_step(atom) or not joins:
            cuts.append(k)
    cuts.append(len(steps[0]))
    return [[s[start:stop] for s in steps] for start, stop in zip(cuts, cuts[1:], strict=False)]


class _Product:
    """Operations that are multiplied together, of each of several warpgroups."""

    def __init__(self, groups: list[Warpgroup], steps: list[list[WarpgroupOperation]]) -> None:
        self.groups, self.steps = groups, steps
        first = self._issue(steps[0][0])
        self.atom, self.lanes = first.atom, first.lanes

    @staticmethod
    def _issue(step: WarpgroupOperation) -> Issue:
        issue = step.issues[0]
        assert issue is not None
        return issue

    def __call__(self) -> None:
        atom, calls = self.atom, len(self.steps[0])
        m, n, k = atom.shape_mnk
        lefts, rights = [], []
        for c in range(calls):
            reads: list[Array] = []
            reads_a = atom.reads_shared("A")
            stored = self._shared("A", c, m, atom.type_a, reads) if reads_a else self._registers(c, atom.stored_k)
            lefts.append(stored if atom.sparsity == 1 else self._dense(c, stored))
            rights.append(self._shared("B", c, n, atom.type_b, reads))
            if self.lanes.observed:
                self._publish_reads(c, reads)
        left, right = (x[0] if calls == 1 else np.concatenate(x, axis=2) for x in (lefts, rights))
        keep = self.steps[0][0].keep
        if rounds_each_step(atom):
            for at in range(0, left.shape[2], k):
                self._add(left[..., at : at + k], right[..., at : at + k], keep or at > 0)
        else:
            self._add(left, right, keep)
        for steps in self.steps:
            steps[0].accumulators.pending -= calls
            for step in steps:
                for held in (*step.a, *step.e):
                    if held is not None:
                        held.release()

    def _add(self, left: Array, right: Array, keep: bool) -> None:
        product = multiplied(self.atom, left, right)
        for steps, new in zip(self.steps, product, strict=True):
            accumulators = steps[0].accumulators
            accumulators.values = added(self.atom, accumulators.values if keep else None, new)

    # -- operands ------------------------------------------------------------------------------------------------------

    def _registers(self, call: int, k: int) -> Array:
        """``[units, rows, RestK * k]`` of A in registers."""
        atom, op = self.atom, self.steps[0][call].op
        layout = op.attrs["a_layout"]
        thread, value = owners(atom.layout_a, 64, k)
        values = offsets(layout[0])[value[:16]]
        held = [h.values for steps in self.steps for h in steps[call].a if h is not None]
        rest_m, rest_k = offsets(layout[1]), offsets(layout[2])
        place = op.attrs["a_offset"] + values[None, :, None, :] + rest_m[:, None, None, None] + rest_k[:, None]
        patterns = numbers.raw(np.stack(held), atom.type_a)
        lane = np.broadcast_to(thread[:16][None, :, None, :], place.shape)
        elements = numbers.widen(patterns[:, lane, place], atom.type_a)  # [warps, RestM, 16, RestK, k]
        split = elements.reshape(len(self.steps), WARPGROUP_WARPS, rest_m.size, 16, rest_k.size * k)
        return split.transpose(0, 2, 1, 3, 4).reshape(len(self.steps), rest_m.size * 16 * WARPGROUP_WARPS, -1)

    def _dense(self, call: int, stored: Array) -> Array:
        """``[units, rows, K]`` of a sparse A, whose stored elements are ``[units, rows, K / 2]``. Metadata of zeros, as
        TMA fills in beyond the ends of a matrix, belong to elements that are zero, too."""
        atom, op = self.atom, self.steps[0][call].op
        registers = np.array(atom.metadata_registers(op))  # type: ignore[attr-defined]  # [RestM, K / 64]
        held = np.concatenate([h.values for steps in self.steps for h in steps[call].e if h is not None])
        words = held.reshape(len(self.steps), 128, -1)[:, :, registers].transpose(0, 2, 3, 1)
        places = stored_places(words, metadata_layout(atom.type_a.width))  # [units, RestM, 64, K / 4, 2]
        places = places.reshape(len(self.steps), -1, *places.shape[3:])
        wrong, rule = misplaced(stored, places, atom.type_a.width)
        if wrong.any():
            (unit, row, chunk), width = np.argwhere(wrong)[0].tolist(), chunk_of(atom.type_a.width)
            first_element = width * chunk
            first, second = places[unit, row, chunk].tolist()
            raise self.lanes.fault(
                f"{atom.mnemonic()}: the metadata of row {row}, elements {first_element} to "
                f"{first_element + width - 1} of A name the places {first} and {second}, {rule}",
                None,
                "make values and metadata with tilewright.gemm.compress_2_4",
            )
        return written_out(stored, places, atom.type_a.width)

    def _shared(self, role: str, call: int, rows: int, type_: ScalarType, reads: list[Array]) -> Array:
        """``[units, RestMN * rows, RestK * k]`` of an operand in shared memory, as numbers that multiply exactly; adds
        the addresses of its pieces to ``reads``."""
        attrs = self.steps[0][call].op.attrs
        layout, high = attrs[f"{role.lower()}_layout"], attrs[f"{role.lower()}_high"]
        words = self._words(role, call)
        rest_mn, rest_k = offsets(layout[1]), offsets(layout[2])
        major, swizzle = self.atom.major_of(role), BYTE_SWIZZLES[WGMMA.kind_of(high >> WGMMA.shift)]
        k = self.atom.stored_k if role == "A" else self.atom.shape_mnk[2]
        address = addresses(tuple(words), layout, major, swizzle, high & FIELD, rows, k, type_)
        reads.append(address)
        chunks = self.lanes.read_shared(address, np.array([group.first for group in self.groups]))
        return matrices(chunks, (rest_mn.size, rest_k.size), major, rows, type_)

    def _publish_reads(self, call: int, reads: list[Array]) -> None:
        """Observers are notified of the reads from each call that has issued them: once for a warpgroup that was
        together, else for each of its warps."""
        by_issue: dict[int, tuple[Issue, list[int], list[int]]] = {}
        for unit, steps in enumerate(self.steps):
            step = steps[call]
            together = len({id(issue) for issue in step.issues}) == 1
            for issue, row in list(zip(step.issues, step.rows, strict=True))[: 1 if together else WARPGROUP_WARPS]:
                assert issue is not None
                _, units, rows = by_issue.setdefault(id(issue), (issue, [], []))
                units.append(unit)
                rows.append(row)
        for issue, units, rows in by_issue.values():

            def publish(lanes: Lanes = issue.lanes, units: list[int] = units, rows: list[int] = rows) -> None:
                every = units == list(range(len(self.steps)))
                for address in reads:
                    lanes.reads_shared(address if every else address[units], np.array(rows))

            issue.act(publish)

    def _words(self, role: str, call: int) -> list[int]:
        """The low word of the descriptor of each warpgroup: all its warps must agree."""
        words = []
        for steps in self.steps:
            step = steps[call]
            per_issue = [
                int((issue.a if role == "A" else issue.b)[row])  # type: ignore[union-attr,index]  # found above
                for issue, row in zip(step.issues, step.rows, strict=True)
            ]
            if per_issue.count(per_issue[0]) != WARPGROUP_WARPS:
                raise _differs(self.atom, self.lanes, f"the descriptor of {role}")
            words.append(per_issue[0])
        return words
