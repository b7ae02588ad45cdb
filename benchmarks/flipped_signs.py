"""Would the tests notice a wrong sign? Each sign of some files is flipped, one at a time, and tests are run.

    python -m benchmarks.flipped_signs FILE... -- TEST...

The files are of src; TEST... goes to pytest. Signs are <= and >, < and >=, + and - between two values, and the
words min and max, all and any, most and least where they are called, looked up or given by name. The working
tree is left alone: each flip is made in a copy of src. A flip that no test notices is printed with its line, to
be read: some change a reason and no verdict, or stand among equal values. Exit status 1 if there is one.
"""

from __future__ import annotations

import io
import keyword
import os
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIGNS = (("<=", ">"), ("<", ">="), ("+", "-"))
WORDS = (("min", "max"), ("all", "any"), ("most", "least"), ("amin", "amax"), ("idxmin", "idxmax"))
OTHER = {a: b for pair in (*SIGNS, *WORDS) for a, b in (pair, pair[::-1])}
LIMIT = 600  # seconds; tests that no longer end have noticed


@dataclass(frozen=True)
class Flip:
    """One sign of one file: what stood there, in its line, and the whole text with the other sign."""

    path: Path
    line: int
    sign: str
    shown: str
    text: str

    def __str__(self) -> str:
        where = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{where}: {self.sign} to {OTHER[self.sign]} in  {self.shown}"


def main(words: list[str]) -> int:
    """Flip them all, some side by side, and tell those that nothing noticed."""
    if "--" not in words or not words.index("--") or words[-1] == "--":
        print(__doc__, file=sys.stderr)
        return 2
    cut = words.index("--")
    files, tests = [Path(word).resolve() for word in words[:cut]], words[cut + 1 :]
    if not passes(None, tests):
        print("the tests fail as they are", file=sys.stderr)
        return 2
    made = [flip for path in files for flip in flips(path)]
    with ThreadPoolExecutor(os.cpu_count()) as several:
        blind = []
        for flip, missed in zip(made, several.map(lambda f: passes(f, tests), made), strict=True):
            if missed:
                blind.append(flip)
                print(flip, flush=True)
    print(f"{len(made)} flips, {len(blind)} not noticed")
    return int(bool(blind))


def flips(path: Path) -> Iterator[Flip]:
    """Each sign of the file that has another, where the text still compiles with it."""
    text = path.read_text(encoding="utf-8")
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in (tokenize.NL, tokenize.COMMENT)
    ]
    lines = text.splitlines(keepends=True)
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.string not in OTHER or not is_sign(before, token, after):
            continue
        row, start = token.start
        line = lines[row - 1]
        changed = line[:start] + OTHER[token.string] + line[token.end[1] :]
        flipped = "".join([*lines[: row - 1], changed, *lines[row:]])
        try:
            compile(flipped, str(path), "exec")
        except SyntaxError:
            continue
        yield Flip(path, row, token.string, line.strip(), flipped)


def is_sign(
    before: tokenize.TokenInfo, token: tokenize.TokenInfo, after: tokenize.TokenInfo
) -> bool:
    """A comparison, a sum of two values, or a word that is called, looked up or given by name."""
    if token.type == tokenize.OP:
        value = before.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
        ends = value and not keyword.iskeyword(before.string)
        return token.string not in "+-" or ends or before.string in (")", "]")
    return token.type == tokenize.NAME and (before.string == "." or after.string in ("(", "="))


def passes(flip: Flip | None, tests: list[str]) -> bool:
    """Whether the tests pass on a copy of src with that flip."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("*.egg-info"))
        if flip is not None:
            (copy / flip.path.relative_to(ROOT / "src")).write_text(flip.text, encoding="utf-8")
        order = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        there = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(order, cwd=ROOT, env=there, capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
