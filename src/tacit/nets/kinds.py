"""What the verbs know of each kind of net, registered once where the kind is defined.

    register(TwoLayerNet, name="two_layer", certificate="tacit.certify.radius:two_layer_radius", ...)

A facet is a function, or a text "package.module:name" that is imported when it is first asked for: so a net may
name rooms that come after it. A class has the facets of its bases too. What nobody registered, but torch can
call, is attacked and audited by autograd. Code asks for a facet as an attribute (`kind.certificate`), which
`base.sources` follows to the function.
"""

import importlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from tacit.errors import CallError

FACETS = {
    "tensors": "(net) -> its tensors by name",
    "state": "(net) -> tensors and metadata, what a file holds",
    "load": "(class, tensors, metadata) -> net",
    "target": "(net, shape) -> attack.Target, scores with gradients in closed form",
    "landmarks": "(net) -> rows (k, D) and the label of each: directions that attacks start in",
    "shortest": "(net, x, y, generator) -> Found, the shortest perturbations in l2",
    "certificate": "(net, x, y, question) -> Radii, no perturbation shorter than the lower end breaks",
    "ties": "True where the certificate honours question.ties_break",
    "structure": "(net) -> the same as a net of a simpler kind, which is certified in its place, or None",
    "proved_points": "(net) -> how many points of an audit get a certificate, where one takes long",
    "relaxed": "(net) -> the same as a torch Sequential for CROWN, or why there is none",
    "trainee": "(net, x, y, objective) -> train.descent Trainee",
    "trained": "the names of the tensors that training moves",
    "audited": "(net) -> the net that an audit looks at in its place",
    "hidden_weights": "(net, shape) -> auditing.averaging.Neurons, or why there are none",
}
GROUP = "tacit.nets"  # entry points of packages whose modules register kinds
ELSEWHERE = SimpleNamespace(torch_modules="tacit.nn.modules:MODULE")


@dataclass(frozen=True)
class Kind:
    """A class of nets, the name that its files have, and its facets as attributes (None: not registered)."""

    cls: type
    name: str
    facets: Mapping[str, Any]

    def __getattr__(self, facet: str) -> Any:
        """The facet, imported where it is a text."""
        if facet not in FACETS:
            raise AttributeError(facet)
        found = self.facets.get(facet)
        return imported(found) if isinstance(found, str) else found


@dataclass(frozen=True)
class Needed:
    """The facets of a net for one verb: one that is missing is a call error."""

    net: Any
    verb: str

    def __getattr__(self, facet: str) -> Any:
        """The facet, or one line on what to register."""
        kind = kind_of(self.net)
        found = None if kind is None else getattr(kind, facet)
        if found is None:
            cls = type(self.net).__name__
            known = f"kind {kind.name!r}" if kind else "of no registered kind"
            raise CallError(
                f"{self.verb}: a {cls} ({known}) has no {facet}; register it where the class is defined: "
                f"tacit.nets.register({cls}, name=..., {facet}=...), {facet}: {FACETS[facet]}"
            )
        return found


KINDS: dict[type, Kind] = {}


def register(cls: type, *, name: str, **facets: Any) -> Kind:
    """Tell the verbs what they need to know of a class of nets; `name` is the `kind` in its files."""
    unknown = sorted(set(facets) - set(FACETS))
    if unknown:
        raise CallError(
            f"register({cls.__name__}): there is no facet {unknown[0]!r}; one of {', '.join(FACETS)}"
        )
    taken = [kind.cls for kind in KINDS.values() if kind.name == name and kind.cls is not cls]
    if taken and (taken[0].__module__, taken[0].__qualname__) != (cls.__module__, cls.__qualname__):
        raise CallError(
            f"register({cls.__name__}): the name {name!r} is that of {taken[0].__name__}; choose another"
        )
    for again in taken:  # the module was imported anew
        del KINDS[again]
    KINDS[cls] = Kind(cls, name, facets)
    return KINDS[cls]


def kind_of(net: Any) -> Kind | None:
    """The kind of a net; None for what nobody registered."""
    imported(ELSEWHERE.torch_modules)
    return whole(type(net))


def whole(cls: type) -> Kind | None:
    """The kind of a class, with the facets of all its bases."""
    kinds = [KINDS[base] for base in cls.__mro__ if base in KINDS]
    facets: dict[str, Any] = {}
    for kind in reversed(kinds):
        facets |= kind.facets
    return Kind(kinds[0].cls, kinds[0].name, facets) if kinds else None


def asked_of(net: Any, verb: str) -> Needed:
    """The facets that a verb cannot do without: `asked_of(net, "descend").trainee`."""
    return Needed(net, verb)


def first_tensor(net: Any) -> Tensor | None:
    """The first floating-point tensor of a net: it tells type and device; None where nothing does."""
    kind = kind_of(net)
    held = {} if kind is None or kind.tensors is None else kind.tensors(net)
    return next((tensor for tensor in held.values() if tensor.is_floating_point()), None)


def kind_named(name: str) -> Kind | None:
    """The kind whose files have that name; packages that announce kinds are imported if it is not known yet."""
    imported(ELSEWHERE.torch_modules)
    if all(kind.name != name for kind in KINDS.values()):
        for entry in entry_points(group=GROUP):
            with suppress(Exception):  # another package's: it is told that the kind is not known
                entry.load()
    return next((whole(cls) for cls, kind in KINDS.items() if kind.name == name), None)


def imported(text: str) -> Any:
    """What "package.module:name" names."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)
