"""Tiny data sets as their publishers would write them, and a server on this machine that gives their files."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from tacit.data.images import DATASETS, Dataset
from tacit.data.images.catalogue import DataFile

RECORDS = 3  # images in a batch of the tiny CIFAR-10


def idx_bytes(array: np.ndarray) -> bytes:
    """The idx format by its description: 0, 0, the type 8 (bytes), the rank, big-endian sizes, the bytes."""
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(
        f">{array.ndim}I", *array.shape
    )
    return gzip.compress(header + array.astype(np.uint8).tobytes(), mtime=0)


def cifar_bytes(x: np.ndarray, y: np.ndarray) -> bytes:
    """Records one after the other: a label, then all red, all green, all blue pixels, row by row."""
    records = b""
    for image, label in zip(x, y, strict=True):
        records += bytes([int(label)])
        for plane in range(3):
            for row in image:
                records += bytes(int(pixel[plane]) for pixel in row)
    return records


def tiny_images(seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Random images and labels."""
    random = np.random.default_rng(seed)
    return random.integers(0, 256, shape, np.uint8), random.integers(0, 10, shape[0], np.uint8)


def data_file(name: str, content: bytes) -> DataFile:
    """The catalogue's entry for that content."""
    return DataFile(name, len(content), hashlib.sha256(content).hexdigest())


def tiny_mnist(train: int = 5, labels: int = 5) -> tuple[Dataset, dict[str, bytes]]:
    """MNIST with `train` images of 4 x 3 and as many labels as asked for, and its files."""
    x, y = tiny_images(0, (train, 4, 3))
    u, v = tiny_images(1, (2, 4, 3))
    names = [file.name for file in DATASETS["mnist"].all_files]
    contents = [idx_bytes(x), idx_bytes(np.resize(y, labels)), idx_bytes(u), idx_bytes(v)]
    files = [data_file(*pair) for pair in zip(names, contents, strict=True)]
    parts = {"train": tuple(files[:2]), "test": tuple(files[2:])}
    return replace(DATASETS["mnist"], files=parts), dict(zip(names, contents, strict=True))


def tiny_cifar() -> tuple[Dataset, dict[str, bytes]]:
    """CIFAR-10 with three images a batch, and its files; the archive is among them."""
    published = DATASETS["cifar10"]
    contents = {
        file.name: cifar_bytes(*tiny_images(number, (RECORDS, 32, 32, 3)))
        for number, file in enumerate(published.all_files)
    }
    files = {
        part: tuple(data_file(file.name, contents[file.name]) for file in published.files[part])
        for part in published.files
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{published.folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    whole = data_file("cifar-10-binary.tar.gz", packed.getvalue())
    contents[whole.name] = packed.getvalue()
    return replace(published, files=files, archive=whole), contents


@dataclass
class Server:
    """Files by name below an address; `cut` of them promise more bytes than they send."""

    address: str
    files: dict[str, bytes]
    cut: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    failures: int = 0  # answers with status 503 that are still to be given


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    """A web server on a free port of this machine, as long as it is needed."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rsplit("/", 1)[-1]
            server.asked.append(name)
            if server.failures:
                server.failures -= 1
                self.send_error(503)
            elif name not in server.files:
                self.send_error(404)
            else:
                content = server.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in server.cut else content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = Server(f"http://127.0.0.1:{http.server_port}/data/", files)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
