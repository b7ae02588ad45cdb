"""Speed against references, each a ratio measured in one run on the same machine."""
