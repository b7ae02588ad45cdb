"""`import tacit` and `tacit --help` against importing torch, each in a fresh process (best of 5)."""

import subprocess
import sys
import time


def main() -> None:
    torch = best("import torch")
    for name, code in (
        ("import tacit", "import tacit"),
        (
            "tacit --help",
            "import sys; sys.argv = ['tacit', '--help']; from tacit.cli import main; main()",
        ),
    ):
        seconds = best(code)
        print(f"{name}: {seconds:.2f} s, {torch / seconds:.0f}x faster than importing torch")


def best(code: str) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
