"""`make bench`: every benchmark, one line a measurement."""

import importlib
import pkgutil

import torch

import benchmarks

# they compare runs or look at code, and take words of their own
CHECKS = {"any_cpu", "flipped_signs", "house", "other_worlds", "same_results"}


def main() -> None:
    torch.set_num_threads(1)  # explicit: two threads can be slower than one beside neighbours
    print(f"torch {torch.__version__}, 1 thread")
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if not module.name.startswith("_") and module.name not in CHECKS:
            importlib.import_module(f"benchmarks.{module.name}").main()


if __name__ == "__main__":
    main()
