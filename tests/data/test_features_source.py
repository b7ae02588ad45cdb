import numpy as np
import pytest
import torch

from tacit.data.features import features_of, make_extractor
from tacit.errors import CallError, RunError


class Fake:
    """A source that may lie about itself."""

    classes = ("a", "b")

    def __init__(self, states, gives, dtype=np.uint8):
        self.states, self.gives, self.dtype = states, gives, dtype
        self.y = np.zeros(states, np.int64)

    def __len__(self):
        return self.states

    def fingerprint(self):
        return "fake"

    def batches(self, size):
        for first in range(0, self.gives, size):
            rows = min(size, self.gives - first)
            yield np.zeros((rows, 2, 2, 1), self.dtype), np.zeros(rows, np.int64)


def test_sources_that_do_not_hold_what_they_state_are_refused():
    pixels = make_extractor("pixels")
    assert features_of(Fake(5, 5), pixels, cache=False).x.shape == (5, 4)
    with pytest.raises(RunError, match="states 5 images and gave 4"):
        features_of(Fake(5, 4), pixels, cache=False)
    with pytest.raises(RunError, match="more images than the 5"):
        features_of(Fake(5, 6), pixels, cache=False, batch=2)
    with pytest.raises(CallError, match="no images"):
        features_of(Fake(0, 0), pixels, cache=False)
    with pytest.raises(CallError, match=r"batch of float32 \(5, 2, 2, 1\)"):
        features_of(Fake(5, 5, np.float32), pixels, cache=False)
    short = Fake(5, 5)
    short.y = short.y[:4]
    with pytest.raises(CallError, match="5 images and 4 labels"):
        features_of(short, pixels, cache=False)


def test_wrong_calls_are_refused(tmp_path):
    pixels = make_extractor("pixels")
    with pytest.raises(CallError, match="batch=0"):
        features_of(Fake(3, 3), pixels, batch=0, cache=False)
    with pytest.raises(CallError, match="none that torch knows"):
        features_of(Fake(3, 3), pixels, device="gpu", cache=False)
    if not torch.cuda.is_available():
        with pytest.raises(CallError, match="no GPU"):
            features_of(Fake(3, 3), pixels, device="cuda", cache=False)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RunError, match=r"cannot be kept in .*cache=False"):
        features_of(Fake(3, 3), pixels, cache=blocked / "inside")
