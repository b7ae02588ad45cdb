"""An exhibit with a fault in it."""


def run(config, bench):
    raise ZeroDivisionError("a fault\nof two lines")


def draw(data, config):
    raise AssertionError("there is nothing to draw")
