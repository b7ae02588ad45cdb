"""A package that cannot be imported."""

raise RuntimeError("this package\nis broken")
