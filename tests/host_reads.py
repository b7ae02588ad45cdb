"""A GPU can record only what the host does not look at."""

from torch.utils._python_dispatch import TorchDispatchMode


class NoHostReads(TorchDispatchMode):
    """Fails where a value would have to come to the host, or a shape depends on one."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "item")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.overloadpacket.__name__ not in self.FORBIDDEN, func
        return func(*args, **(kwargs or {}))
