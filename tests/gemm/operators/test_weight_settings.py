"""What a weight was prepared for stays with its words: parts of other settings are refused wherever they come from."""

from __future__ import annotations

import hashlib
import io
import pickle
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import PreparedWeight, mixed_matmul, prepare_weight
from tilewright.gemm.operators.mixed import prepared_operand
from tilewright.gemm.operators.weight_settings import BLOCK, KNOWN, MARKS, ORDER, WeightSettings

REFUSED = "the weight is not prepared, or prepared for other settings"
N, K = 16, 256


def prepared(settings: WeightSettings, n: int = N, k: int = K) -> PreparedWeight:
    """A weight of other numbers in each place, as far as its type has so many."""
    places = np.arange(n * k, dtype=np.int64).reshape(n, k) * 37
    scales = np.ones((n, k // settings.group), np.float16)
    zeros = np.full(scales.shape, 3, np.uint8) if settings.zeros else None
    name, bits = settings.dtype.__name__, settings.dtype.width
    if name == "Float4E2M1FN":
        return prepare_weight((places % 251).astype(np.uint8)[:, : k // 2], scales)
    if name == "Float8E4M3FN":
        return prepare_weight((places % 120).astype(np.uint8).view(ml_dtypes.float8_e4m3fn), scales)
    least = 0 if zeros is not None else -(1 << bits - 1)
    return prepare_weight((places % (1 << bits) + least).astype(np.int8), scales, zeros, bits=bits)


def test_marks_are_all_different() -> None:
    assert [settings.mark for settings in KNOWN] == [(ORDER - 1) * MARKS + 1 + i for i in range(len(KNOWN))]
    assert len(KNOWN) < MARKS and KNOWN[-1].mark < BLOCK
    for settings in KNOWN:
        assert WeightSettings.of(settings.words(N, K)) == settings
        assert prepared(settings).settings == settings and prepared(settings).shape == (N, K)


def test_another_order_has_another_number() -> None:
    """The words of each kind of weight, as they are in ``ORDER``. A change of the order has to change that number, and
    then these."""
    found = {str(x).partition(",")[0]: hashlib.sha256(prepared(x).blocks.tobytes()).hexdigest()[:16] for x in KNOWN}
    assert (ORDER, found) == (
        1,
        {
            "Int4 without zero points": "84720914f55869bb",
            "Int4 with zero points": "84720914f55869bb",
            "Int8 without zero points": "223eebaadc532c17",
            "Float8E4M3FN without zero points": "35daef90a0608913",
            "Float4E2M1FN without zero points": "bbe1fa5798148ec1",
        },
    )


def test_words_with_the_parts_of_another_weight() -> None:
    """Of all settings, and a weight of as many numbers but of the transposed shape."""
    weights = [prepared(settings) for settings in KNOWN] + [prepared(KNOWN[2], K, 128)]
    a, taken = np.ones((1, K), np.float16), 0
    for one, other in product(weights, weights):
        parts = PreparedWeight(one.words, other.scales, other.zeros)
        same = one.group == other.group and (one.zeros is None) == (other.zeros is None) and one.shape == other.shape
        if same:
            assert parts.settings == one.settings
            taken += 1
        else:
            with pytest.raises(ArgumentError, match=REFUSED):
                mixed_matmul(a, parts)
    assert taken == len(KNOWN) + 3 * (4 * 3) + 1  # without zero points: four types of numbers share their scales


@pytest.mark.parametrize(
    "words",
    [
        np.zeros((N // 8, K // 128, 32, 4), np.int32),  # of the first order of all, which had no marks
        np.zeros(N * K // 8, np.int32),
        np.zeros(N * K // 8 + BLOCK - 1, np.int32),
        np.zeros(N * K // 8 + len(KNOWN) + 1, np.int32),
        np.zeros((), np.int32),
    ],
    ids=lambda words: str(words.shape),
)
@pytest.mark.parametrize("rows", [1, 65])
def test_words_that_are_not_prepared(words: np.ndarray, rows: int) -> None:
    out = np.full((rows, N), 7, np.float16)
    with pytest.raises(ArgumentError, match=REFUSED):
        mixed_matmul(np.ones((rows, K), np.float16), PreparedWeight(words, np.ones((2, N), np.float16)), out=out)
    assert (out == 7).all()


def test_words_that_were_saved_moved_and_compiled() -> None:
    """As pickles, by torch.save, as buffers of a module, and as operands of the operator."""
    torch = pytest.importorskip("torch")
    import tilewright.gemm.operators.torch_mixed  # noqa: F401  registers the operator

    class Linear(torch.nn.Module):
        def __init__(self, weight: PreparedWeight) -> None:
            super().__init__()
            for name in ("words", "scales", "zeros"):
                self.register_buffer(name, getattr(weight, name))

        def forward(self, x: Any) -> Any:
            return mixed_matmul(x, PreparedWeight(self.words, self.scales, self.zeros))

    x = torch.ones(3, K, dtype=torch.float16)
    for settings in (KNOWN[0], KNOWN[5], KNOWN[14]):
        of_numpy = prepared(settings)
        parts = [None if part is None else torch.from_numpy(part) for part in vars(of_numpy).values()]
        weight = PreparedWeight(*parts)
        expected = mixed_matmul(x, weight)
        torch.testing.assert_close(mixed_matmul(x, pickle.loads(pickle.dumps(weight))), expected)
        module, file = Linear(weight), io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        other = Linear(PreparedWeight(*(None if part is None else torch.zeros_like(part) for part in parts)))
        other.load_state_dict(torch.load(file))
        compiled = torch.compile(other.half().to("cpu"), backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), expected)
        wrong = Linear(PreparedWeight(parts[0][:-1], *parts[1:]))
        for run in (wrong, torch.compile(wrong, backend="eager", fullgraph=True)):
            with pytest.raises(Exception, match=REFUSED):
                run(x)
        with pytest.raises(Exception, match=REFUSED):
            torch.ops.tilewright.mixed_matmul(x, parts[0].reshape(1, -1), parts[1])


@pytest.mark.parametrize("settings", [KNOWN[0], KNOWN[6]], ids=str)
def test_kernels_see_the_same_words_of_all_frameworks(settings: WeightSettings) -> None:
    torch = pytest.importorskip("torch")
    weight = prepared(settings)
    other = PreparedWeight(*(None if x is None else torch.from_numpy(x) for x in vars(weight).values()))
    one, same = (prepared_operand(x).words for x in (weight, other))
    assert (one.shape, one.stride) == (same.shape, same.stride)
