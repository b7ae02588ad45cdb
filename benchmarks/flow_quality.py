"""The flow against the released SGD loop run to its end: the same data, the same first weights, the same time.

D = 200, h = 400, n = 4000, K = 10 (6 positive), init sd 1e-7, exp loss; the loop: batches of 100, step .2, 401
epochs (t = 3208), all seeds and noise levels in one tensor program (on a GPU where there is one; an hour on one
core). The bar of the project: the distance to F or F^(p) within 5% of the loop's or smaller, the same learned
directions, robust accuracy within 1 point at every radius.
"""

import torch

from tacit.attack import minimal
from tacit.data import ClusterMixture, Samples, min2024_mixture
from tacit.measure import function_distance, learned_directions
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.train import Until, descend, gradient_flow

D, H, N, K, K1, SD = 200, 400, 4000, 10, 6, 1e-7
BATCH, STEP, EPOCHS = 100, 0.2, 401
ALPHAS, SEEDS = (0.05, 0.1, 0.2), (0, 1, 2)
RADII = torch.linspace(0, 1.5, 15, dtype=torch.float64)
POINTS = 1000


def main() -> None:
    cells = [(alpha, seed) for alpha in ALPHAS for seed in SEEDS]
    mixtures = [
        min2024_mixture(D, K, K1, alpha, torch.Generator().manual_seed(100 + seed))
        for alpha, seed in cells
    ]
    sets = [
        mixture.sample(N, torch.Generator().manual_seed(200 + seed))
        for mixture, (_, seed) in zip(mixtures, cells, strict=True)
    ]
    x = torch.stack([s.x for s in sets]).float()
    y = torch.stack([s.y for s in sets]).float()
    firsts = [torch.Generator().manual_seed(300 + seed) for _, seed in cells]
    w = torch.stack([SD * torch.randn(H, D, generator=g) for g in firsts])
    v = torch.stack([SD * torch.randn(H, generator=g) for g in firsts])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for p in (1.0, 3.0):
        net = TwoLayerNet(w.to(device), v.to(device), p=p)
        order = torch.Generator().manual_seed(400)
        trained = descend(
            net, x.to(device), y.to(device), step=STEP, epochs=EPOCHS, batch=BATCH, generator=order
        ).net
        for i, (alpha, seed) in enumerate(cells):
            sgd = TwoLayerNet(trained.w[i].double().cpu(), trained.v[i].double().cpu(), p=p)
            until = Until(time=EPOCHS * N / BATCH * STEP)
            first = TwoLayerNet(w[i], v[i], p=p)
            half, flow = (
                gradient_flow(first, x[i], y[i], until=until, scout=60, tolerance=tolerance).net
                for tolerance in (0.0025, 0.005)
            )
            test = mixtures[i].sample(POINTS, torch.Generator().manual_seed(500 + seed))
            print(
                f"p={p:g} alpha={alpha} seed {seed}: {compared(sgd, flow, half, mixtures[i], test)}"
            )


def compared(
    sgd: TwoLayerNet, flow: TwoLayerNet, half: TwoLayerNet, mixture: ClusterMixture, test: Samples
) -> str:
    """What differs, in words."""
    F = average_net(mixture) if sgd.p == 1 else centre_net(mixture, sgd.p)
    one, two, three = (function_distance(net, F).lower for net in (sgd, flow, half))
    learned = [learned_directions(net, F.w).mass.sum(0) > 0.01 for net in (sgd, flow)]
    radii = [minimal(net, test.x, test.y, norm=2).radius for net in (sgd, flow)]
    curves = [(r.unsqueeze(1) > RADII).double().mean(0) for r in radii]
    apart = float((curves[0] - curves[1]).abs().max())
    return (
        f"dist {one:.5f} (SGD), {two:.5f} (flow, {100 * (two / one - 1):+.1f}%, at half the tolerance "
        f"{100 * (three / two - 1):+.2f}%), directions learned {int(learned[0].sum())} and "
        f"{int(learned[1].sum())}{'' if torch.equal(*learned) else ' NOT THE SAME'}, robust accuracy apart by at "
        f"most {100 * apart:.1f} points, critical radius {float(radii[0].median()):.4f} and "
        f"{float(radii[1].median()):.4f}"
    )


if __name__ == "__main__":
    main()
