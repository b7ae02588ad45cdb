"""What the figures of Section 8 draw alike: attackers by their names, images in rows."""

from tacit.papers.allenzhu2020.deep.settings import Deep

NAMES = {
    "linf4": r"$\ell_\infty$(4/255)",
    "linf8": r"$\ell_\infty$(8/255)",
    "l2half": r"$\ell_2$(0.5, 0.12)",
    "l2one": r"$\ell_2$(1, 0.25)",
}


def setting_of(config: Deep) -> str:
    """What a figure is of, as its title says it."""
    images = {"cifar10": "CIFAR-10", "digits": "digits"}[config.dataset]
    size = f", {config.side} x {config.side} pixels" if config.side else ""
    some = f", {config.train:,} training images" if config.train else ""
    return f"ResNet-{config.depth}, width {config.width}, {images}{size}{some}"
