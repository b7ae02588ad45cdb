"""Not a paper yet: the underscore hides it."""

raise RuntimeError("a hidden module was imported")
