"""How annotations are enforced in tests: by beartype, for which an int is a float as in mypy."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
