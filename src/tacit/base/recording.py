"""A step that the host does not look into, recorded once on a GPU and replayed without the host's delay."""

from collections.abc import Callable, Iterable

import torch

WARM = 3  # steps before a recording: kernels are chosen, memory is taken


def recorded(
    step: Callable[[], None], generators: Iterable[torch.Generator] = ()
) -> Callable[[], object]:
    """What makes one step; the first `WARM` are made on the way, so that the caller puts its state back.

    All that a step reads and writes lies on the GPU, in tensors that stay; it draws from these `generators`.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        step()
    return graph.replay
