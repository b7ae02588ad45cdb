"""The random stream of a name: the same in every process, and another one for every other name."""

import torch

from tacit.lab.bench import stream_of


def test_no_two_names_share_a_stream() -> None:
    # checksums of such names meet: of these 20,000 draws 9,966 differed while adler32 made the state
    names = [(seed, "points", n) for seed in range(1000) for n in range(20)]
    first = {
        float(torch.rand((), generator=stream_of(*each), dtype=torch.float64)) for each in names
    }
    assert len(first) >= len(names) - 2  # 32 bits: two of 20,000 meet in one list of twenty


def test_a_stream_is_known_by_its_name() -> None:
    # a number that changes here changes every number that was ever published
    assert stream_of(123, "points").initial_seed() == 5812703571114787180
    assert stream_of(123, "points").initial_seed() != stream_of(204, "points").initial_seed()
