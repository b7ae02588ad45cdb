"""Write what `make demo` measured into the claims ledger and the README's table: `make ledger`.

Reads the run folders, so that no number on those pages is typed by hand.
"""

import json
import sys
from pathlib import Path

from tacit import exhibits
from tacit.lab.claim import Claim

MARK = {"holds": "✓ holds", "differs": "✗ differs", "not testable here": "○ not testable here"}
BEGIN, END = "<!-- claims: make ledger -->", "<!-- end of claims -->"


def main(runs: Path) -> None:
    """Collect the claims of all exhibits in their order, and write both pages."""
    found = [
        (exhibit, [Claim.from_json(record) for record in json.loads(path.read_text())])
        for exhibit in exhibits()
        if (path := runs / exhibit.id / "claims.json").exists()
    ]
    everything = [claim for _, claims in found for claim in claims]
    counts = {verdict: sum(c.verdict == verdict for c in everything) for verdict in MARK}
    total = f"{len(everything)} claims: {counts['holds']} hold, {counts['differs']} differ"
    if counts["not testable here"]:
        total += f", {counts['not testable here']} not testable here"
    ledger = [
        "# Claims ledger\n",
        f"What `make demo` (laptop scale, seed 0) measured. {total}. Written by `make ledger`.\n",
    ]
    short = [
        "| exhibit | claim | expected | measured | verdict |",
        "| --- | --- | --- | --- | --- |",
    ]
    for exhibit, claims in found:
        ledger.append(f"\n## {exhibit.id}: {exhibit.title}\n\n{exhibit.where}. {exhibit.claim}.\n")
        ledger.append(
            "| claim | expected | measured | n | verdict |\n| --- | --- | --- | --- | --- |"
        )
        for claim in claims:
            ledger.append(
                f"| {cell(claim.statement)}<br>*{claim.where}* | {' | '.join(numbers(claim))} |"
            )
            expected, measured, _, verdict = numbers(claim)
            short.append(
                f"| `{exhibit.id}` | {cell(claim.statement)} | {expected} | {measured} | {verdict} |"
            )
            if claim.reason:
                ledger.append(f"| → {cell(claim.reason)} | | | | |")
    Path("docs/ledger.md").write_text("\n".join(ledger) + "\n")
    readme = Path("README.md")
    head, rest = readme.read_text().split(BEGIN)
    table = "\n".join(short)
    readme.write_text(f"{head}{BEGIN}\n{table}\n\n{total}.\n{END}{rest.split(END)[1]}")
    print(total)


def numbers(claim: Claim) -> tuple[str, str, str, str]:
    """Expected, measured, n and verdict, as cells."""
    measured = "" if claim.measured is None else f"{claim.measured:.4g}"
    if claim.spread:
        measured += f" ± {claim.spread:.1g}"
    return cell(str(claim.expected)), measured, f"{claim.n:,}", MARK[claim.verdict]


def cell(text: str) -> str:
    """Safe inside a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("^", "\\^")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
