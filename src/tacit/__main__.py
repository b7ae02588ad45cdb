"""`python -m tacit`, the same as the `tacit` command."""

from tacit.cli import main

main()
