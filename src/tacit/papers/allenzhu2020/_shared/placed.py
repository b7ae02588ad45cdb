"""Test points where the attacks on large nets are run."""

from tacit.data.sparse_coding import SparseSamples


def placed(samples: SparseSamples, device: str) -> SparseSamples:
    """The samples on that device."""
    return SparseSamples(samples.x.to(device), samples.y.to(device), samples.z.to(device))
