import functools
import importlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import fakes
from tacit.base import identity, sources
from tacit.base.identity import identity_of
from tacit.data.features import ImageTransform, make_extractor

SCALE = 2.0


def scaled(x):
    return x.float() * SCALE


class Pooled(nn.Module):
    def __init__(self, power=2.0):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.power = power

    def forward(self, x):
        return self.linear(x.mean((2, 3))) ** self.power


def net(seed=0, **given):
    torch.manual_seed(seed)
    return Pooled(**given)


def test_the_same_things_have_the_same_identity():
    assert identity_of(net(), scaled) == identity_of(net(), scaled) != ""


def test_it_is_the_same_in_another_process():
    code = textwrap.dedent("""
        import torch
        from torch import nn
        from tacit.base.identity import identity_of
        torch.manual_seed(0)
        said = identity_of(nn.Linear(2, 2), lambda x: x in {"a", "b", "c"}, {"x": 1})
        print(said)
    """)
    here = {}
    exec(code, here)
    run = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run(run, capture_output=True, check=True, env=env, text=True).stdout
    assert there == here["said"] + "\n"


def test_weights_change_it():
    changed = net()
    with torch.no_grad():
        changed.linear.weight[0, 0] += 1e-7
    assert len({identity_of(m) for m in (net(), net(1), changed)}) == 3


def test_types_and_shapes_of_weights_change_it():
    w = torch.zeros(4)
    alike = [w, w.double()[:2], w.reshape(2, 2), w.int(), np.zeros(4, np.float32)[:3]]
    assert len({identity_of(x) for x in alike}) == len(alike)


def test_settings_that_are_no_weights_change_it():
    assert identity_of(net()) != identity_of(net(power=3.0))
    assert identity_of(nn.BatchNorm1d(2, eps=1e-3)) != identity_of(nn.BatchNorm1d(2))


def test_eval_mode_does_not_change_it():
    assert identity_of(net().eval()) == identity_of(net())


def test_hooks_change_it():
    hooked = net()
    hooked.register_forward_hook(lambda m, i, o: 2 * o)
    assert identity_of(hooked) != identity_of(net())


def test_the_code_of_a_class_changes_it():
    def variant(k):
        class Odd(nn.Module):
            def forward(self, x):
                return x + (1 if k == 1 else 2) if k else x

        class Odd2(nn.Module):
            def forward(self, x):
                return x - 1

        return Odd2() if k == 2 else Odd()

    assert len({identity_of(variant(k)) for k in (0, 1, 2)}) == 3  # 0 and 1: by the closure


def test_code_closure_defaults_and_globals_of_a_function_change_it(monkeypatch):
    def closed(k):
        return lambda x: x * k

    def default(k):
        def f(x, k=k):
            return x * k

        return f

    alike = [lambda x: x + 1, lambda x: x + 2, closed(1), closed(2), default(1), default(2)]
    alike += [
        functools.partial(torch.mul, 2),
        functools.partial(torch.mul, 3),
        torch.sin,
        torch.cos,
    ]
    found = {identity_of(f) for f in alike}
    assert len(found) == len(alike)
    assert "" not in found
    before = identity_of(scaled)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert identity_of(scaled) != before


def test_a_function_that_calls_another_changes_with_it(monkeypatch):
    def outer(x):
        return scaled(x)

    before = identity_of(outer)
    monkeypatch.setitem(globals(), "scaled", lambda x: x)
    assert identity_of(outer) != before


def test_the_code_of_tacits_own_transforms_changes_it(monkeypatch):
    before = identity_of(ImageTransform(8))
    assert before not in ("", identity_of(ImageTransform(9)))
    monkeypatch.setattr(identity, "code_digest", lambda *starts, asked: "other code")
    assert identity_of(ImageTransform(8)) != before


def test_objects_that_hold_themselves_end():
    odd = net()
    odd.__dict__["me"] = odd
    assert identity_of(odd) not in ("", identity_of(net()))


def test_what_cannot_be_hashed_has_no_identity():
    iterator = iter([1])
    assert identity_of(iterator) == ""
    assert identity_of(lambda x: (x, iterator)) == ""
    assert identity_of(torch.zeros(2).to_sparse()) == ""
    assert identity_of(np.array([object()])) == ""


@pytest.mark.parametrize("change", ["weights", "transform", "none"])
def test_an_extractor_is_known_by_weights_and_transform(change):
    def transform(x):
        return x.permute(0, 3, 1, 2) / 255

    def other(x):
        return x.permute(0, 3, 1, 2) / 256

    one = make_extractor(net(), transform)
    two = make_extractor(
        net(1 if change == "weights" else 0), other if change == "transform" else transform
    )
    assert (one.identity == two.identity) == (change == "none")
    assert one.identity != make_extractor(net()).identity != ""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes modules, and gives the function of that name as a new process would see it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(folder, function, files):
        monkeypatch.syspath_prepend(tmp_path / folder)
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            monkeypatch.delitem(sys.modules, module, raising=False)
        caches = ("code_digest", "followed", "_offering", "_source_of", "_path_of", "_facts")
        for known in caches:
            getattr(sources, known).cache_clear()
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)

    return write


def test_a_helper_beside_a_script_changes_it(written):
    outer = "import aside\ndef f(x):\n    return aside.g(x)\n"
    helpers = (f"def g(x):\n    return x + {k}\n" for k in (1, 2, 1))
    given = ({"alone.py": outer, "aside.py": helper} for helper in helpers)
    found = [identity_of(written("here", "alone:f", files)) for files in given]
    assert found[0] == found[2] != found[1]
    assert "" not in found


def test_the_code_of_an_installed_package_counts_where_it_offers_exhibits(written, tmp_path):
    def found(root, k):
        helper = f"def g(x):\n    return x + {k}\n"
        outer = f"from {root}.inner import g\ndef f(x):\n    return g(x)\n"
        files = {"__init__": "", "outer": outer, "inner": helper}
        given = {f"{root}/{name}.py": text for name, text in files.items()}
        return identity_of(written("site-packages", f"{root}.outer:f", given))

    (tmp_path / "site-packages").mkdir()
    fakes.install(tmp_path / "site-packages", paper="offers.catalogue")
    assert found("offers", 1) != found("offers", 2)
    assert found("library", 1) == found("library", 2), "a library counts by its version"


def test_a_lambda_rests_on_what_it_names_and_not_on_the_function_around_it(written):
    text = """
        def f():
            return (lambda: trained(1)), claimed()

        def trained(x):
            return x

        def claimed():
            return {}
    """

    def found(claim, train="return x"):
        given = text.format(claim).replace("return x", train)
        return identity_of(written("", "pack:f", {"pack/__init__.py": given})()[0])

    assert found(1) == found(2) != found(1, "return -x")


def test_a_module_with_a_method_or_a_layer_called_identity_counts_by_its_weights():
    class Odd(nn.Module):
        def __init__(self, seed):
            super().__init__()
            torch.manual_seed(seed)
            self.linear = nn.Linear(2, 2)

        def identity(self):
            return 0

    layered = net()
    layered.identity = nn.Identity()
    assert identity_of(Odd(0)) != identity_of(Odd(1))
    assert identity_of(layered) not in ("", identity_of(net()))


def test_a_wrapper_counts_beside_what_it_wraps():
    def twice(f):
        @functools.wraps(f)
        def wrapper(x):
            return 2 * f(x)

        return wrapper

    assert identity_of(twice(scaled)) not in ("", identity_of(scaled))


def test_the_class_of_a_tuple_counts():
    class Pair(tuple):
        pass

    assert identity_of(Pair((1, 2))) not in ("", identity_of((1, 2)))
