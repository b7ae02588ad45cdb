"""The idx format of MNIST and Fashion-MNIST: a header of big-endian sizes, then bytes; compressed with gzip."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from tacit.errors import RunError

BYTES = 8  # the idx code for unsigned bytes, the only type that the two sets use


def read_idx(path: Path) -> UInt8[np.ndarray, "*shape"]:
    """The array of a .gz file, decompressed straight into its memory; a `RunError` if the file is not whole."""
    try:
        with gzip.open(path) as stream:
            zeros, kind, rank = struct.unpack(">HBB", _exactly(stream.read(4), 4))
            if zeros != 0 or kind != BYTES or rank == 0:
                raise RunError(f"{path} is no idx file of bytes: its header is not 0 0 8 rank")
            shape = struct.unpack(f">{rank}I", _exactly(stream.read(4 * rank), 4 * rank))
            content = np.empty(math.prod(shape), np.uint8)
            filled = 0
            while filled < len(content):
                more = stream.readinto(content[filled:].data)
                if more == 0:
                    raise EOFError
                filled += more
            if stream.read(1):  # reading to the end checks gzip's own sum, too
                raise RunError(f"{path} holds more than the {shape} bytes that its header states")
    except (EOFError, MemoryError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        told = f" ({error})" if str(error) else ""
        raise RunError(f"{path} is damaged or truncated{told}: put a good copy there") from None
    return content.reshape(shape)


def _exactly(read: bytes, size: int) -> bytes:
    """What was read, if it is that long."""
    if len(read) < size:
        raise EOFError
    return read
