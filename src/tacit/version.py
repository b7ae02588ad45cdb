"""The version of this source tree; `pyproject.toml` repeats it and a test holds the two together.

A constant, not the installed metadata: tacit also runs straight from its source tree, where that
metadata is missing or, worse, belongs to another copy.
"""

__version__ = "0.1.0"
