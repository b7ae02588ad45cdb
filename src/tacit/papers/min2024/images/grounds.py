"""MNIST beside another data set in one run: its variables and dimensions have `mnist_` before their names."""

from dataclasses import replace

import xarray as xr

from tacit.data.images import present
from tacit.papers.min2024.images.nets import Pictures

MARK = "mnist_"


def prefixed(data: xr.Dataset, shared: tuple[str, ...]) -> xr.Dataset:
    """Named as MNIST's, but for the coordinates that both have in common."""
    names = {str(name) for name in (*data.variables, *data.dims)} - set(shared)
    return data.rename({name: MARK + name for name in names})


def of_mnist(data: xr.Dataset) -> xr.Dataset:
    """What was measured on MNIST under its own names, and the attributes that have its mark."""
    own = data[[name for name in data.data_vars if str(name).startswith(MARK)]]
    names = {str(name) for name in (*own.variables, *own.dims) if str(name).startswith(MARK)}
    attrs = {
        key.removeprefix(MARK): value for key, value in data.attrs.items() if key.startswith(MARK)
    }
    plain = own.rename({name: name.removeprefix(MARK) for name in names})
    return plain.drop_attrs().assign_attrs(attrs)


def without_mnist(data: xr.Dataset) -> xr.Dataset:
    """The rest."""
    return data.drop_vars([name for name in data.variables if str(name).startswith(MARK)])


def first_images(pictures: Pictures, n: int) -> Pictures:
    """The first n training images; all test images."""
    return replace(pictures, x=pictures.x[:n], y=pictures.y[:n], kind=pictures.kind[:n])


def mnist_missing() -> str | None:
    """Why MNIST cannot be shown here, if it cannot."""
    if present("mnist"):
        return None
    return "MNIST is not here: `tacit data fetch mnist` gets its images; the rest is run"
