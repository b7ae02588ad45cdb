"""Papers that nobody wrote, for tests of the laboratory: small, quick, and some of them broken."""

from pathlib import Path


def install(site: Path, **points: str) -> None:
    """Make `site` look like a folder in which a package with these entry points is installed."""
    name = "-".join(points)
    metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {target}" for point, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[tacit.exhibits]", *lines, ""]))
