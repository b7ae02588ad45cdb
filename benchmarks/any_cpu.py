"""The same tests and verdicts on any CPU: with torch's plainest kernels, AVX2's and this machine's best.

    python -m benchmarks.any_cpu                          everything: about an hour on two cores
    python -m benchmarks.any_cpu --only mkl --only demo   the lines whose name holds one of these words
    python -m benchmarks.any_cpu --only avx2 tests/train  only these tests

The default suite with each ATEN_CPU_CAPABILITY and 1 and 2 threads, and once with MKL held to AVX2; the slow
tests once with `default`; the exhibits of `make demo` in all of them, whose verdicts must be the same. One line
each: what passed, what failed, how long it took. Exit status 1 if anything failed or a verdict differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

DEMO = ("min2024.fig2", "min2024.fig1", "min2025.alpha0")
HELD = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS")


@dataclass(frozen=True)
class Machine:
    """A CPU to imitate: which instructions, how many threads."""

    name: str
    held: dict[str, str]
    threads: int = 1

    def environment(self, own: Path) -> dict[str, str]:
        """This process's, with nothing kept from another run."""
        free = {key: value for key, value in os.environ.items() if key not in HELD}
        kept = {"TACIT_MODELS": str(own / "models"), "XDG_CACHE_HOME": str(own / "cache")}
        # threads that wait do not spin: beside other work two of them would take four times as long
        kept |= {"OMP_NUM_THREADS": str(self.threads), "GOMP_SPINCOUNT": "0"}
        return {**free, **kept, **self.held}


MACHINES = (
    *(
        Machine(f"{kind or 'best'}-{threads}", {HELD[0]: kind} if kind else {}, threads)
        for kind in ("default", "avx2", "")
        for threads in (1, 2)
    ),
    Machine("mkl-1", {HELD[1]: "AVX2"}),
)


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    kind: str
    machine: Machine

    @property
    def name(self) -> str:
        """What `--only` looks at."""
        return f"{self.kind} {self.machine.name}"


LINES = (
    *(Line("tests", machine) for machine in MACHINES),
    Line("slow", MACHINES[0]),
    *(Line("demo", machine) for machine in MACHINES),
)


def main(words: list[str] | None = None) -> int:
    """Run the lines and print the table."""
    parser = argparse.ArgumentParser(prog="any_cpu", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tests", nargs="*", help="files or folders of tests (all)")
    parser.add_argument("--only", action="append", metavar="WORD", help="lines to run")
    parser.add_argument("--logs", type=Path, help="where the full outputs go (a temporary folder)")
    given = parser.parse_intermixed_args(words)
    lines = [line for line in LINES if any(word in line.name for word in given.only or [""])]
    if not lines:
        parser.error(f"no line holds {given.only}: choose from {[line.name for line in LINES]}")
    logs = given.logs or Path(tempfile.mkdtemp(prefix="any_cpu-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"full outputs: {logs}\n{'':18} {'passed':>7} {'failed':>7} {'minutes':>8}", flush=True)
    bad, seen = 0, {}
    for line in lines:
        own = logs / line.name.replace(" ", "-")
        own.mkdir(exist_ok=True)
        begun = time.perf_counter()
        if line.kind == "demo":
            seen[line.name] = demo(line.machine, own)
            first = next(iter(seen.values()))
            wrong = [id for id, said in seen[line.name].items() if said != first.get(id)]
            passed = len(seen[line.name]) - len(wrong)
            wrong += [f"{id}: no verdict" for id in first.keys() - seen[line.name].keys()]
            wrong += [] if seen[line.name] else ["no run"]
        else:
            passed, wrong = tested(line, own, given.tests)
        bad += len(wrong)
        minutes = (time.perf_counter() - begun) / 60
        print(f"{line.name:18} {passed:7} {len(wrong):7} {minutes:8.1f}", flush=True)
        print(*(f"    {name}" for name in wrong), sep="\n", end="\n" if wrong else "", flush=True)
    return 1 if bad else 0


def tested(line: Line, own: Path, tests: list[str]) -> tuple[int, list[str]]:
    """How many tests passed, and which did not; two processes for one thread, one for two."""
    marks = ["-m", "slow"] if line.kind == "slow" else []
    workers = ["-n", "2", "--dist", "worksteal"] if line.machine.threads == 1 else []
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, *marks, *tests]
    output = kept(command, line.machine, own)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
    passed = re.findall(r"(\d+) passed", output)
    if not passed and not failed:
        failed = [f"nothing ran: {(output.strip().splitlines() or ['no output'])[-1]}"]
    return int(passed[-1]) if passed else 0, failed


def demo(machine: Machine, own: Path) -> dict[str, str]:
    """The verdict of every claim of the demo's exhibits."""
    runs = own / "runs"
    tacit = [sys.executable, "-m", "tacit", "run", *DEMO, "--device", "cpu", "--fresh"]
    kept([*tacit, "--out", str(runs)], machine, own)
    return {
        f"{exhibit} {claim['id']}": claim["verdict"]
        for exhibit in DEMO
        if (runs / exhibit / "claims.json").exists()
        for claim in json.loads((runs / exhibit / "claims.json").read_text())
    }


def kept(command: list[str], machine: Machine, own: Path) -> str:
    """What a command prints, which also goes to its log."""
    with (own / "output.txt").open("w") as log:
        subprocess.run(
            command, env=machine.environment(own), stdout=log, stderr=subprocess.STDOUT, check=False
        )
    return (own / "output.txt").read_text(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
