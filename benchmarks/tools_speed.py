"""The net of `attack_speed`: our whole curve against other tools, each timed on few points in the same run.

20,000 points and 10 radii. A tool with one radius a call (PGD) counts ten times, one that searches the least norm
(DDN) once. Times are of 200 points and extrapolated; robust accuracy is compared on these points.
"""

import time

import torch

from benchmarks.attack_speed import ALPHA, K1, NEURONS, POINTS, RADII, D, K, grouped_net, points
from tacit.attack import minimal
from tacit.attack.others import OTHERS, Logits, aside, judged
from tacit.data import min2024_mixture

TIMED = 200
CALLS = {"ART PGD-100": len(RADII), "foolbox PGD-50": len(RADII), "foolbox DDN-100": 1}


def main() -> None:
    mixture = min2024_mixture(D, K, K1, ALPHA, torch.Generator().manual_seed(0))
    net = grouped_net(mixture, torch.Generator().manual_seed(1))
    x, y = points(mixture, torch.Generator().manual_seed(2))
    minimal(net, x[:100], y[:100])  # warm up
    start = time.perf_counter()
    radius = minimal(net, x, y).radius
    seconds = time.perf_counter() - start
    print(f"minimal norm, {NEURONS} neurons, {POINTS} points, {len(RADII)} radii: {seconds:.2f} s")
    model, labels = Logits(net), (y[:TIMED] > 0).long()
    for name, calls in CALLS.items():
        lengths, took = [], []
        for r in RADII[5:9]:
            start = time.perf_counter()
            with aside():
                attacked = OTHERS[name](model, x[:TIMED], labels, r, None)
            took.append(time.perf_counter() - start)
            broken, _ = judged(model, x[:TIMED], labels, attacked, r, None)
            theirs = 1 - float(broken.double().mean())
            ours = float((radius[:TIMED] > r).double().mean())
            lengths.append((ours, theirs))
        whole = min(took) * POINTS / TIMED * calls
        said = ", ".join(f"{a:.3f}/{b:.3f}" for a, b in lengths)
        never = all(a <= b for a, b in lengths)
        print(
            f"  {whole / seconds:.0f}x {name} (extrapolated {whole / 60:.0f} min); robust accuracy ours/theirs "
            f"at {', '.join(f'{r:.1f}' for r in RADII[5:9])}: {said}{'' if never else ' (HIGHER somewhere)'}"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
