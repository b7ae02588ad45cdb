"""Write what `make verify` measured into the claims ledger and the README's table: `make ledger`.

Reads the run folders, so that no number on those pages is typed by hand.
"""

import json
import sys
from pathlib import Path

from tacit import exhibits
from tacit.lab.claims import Claim

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
        f"What `make verify` (laptop scale, seed 0) measured. {total}. Written by `make ledger`.\n",
    ]
    head = "| exhibit | claim | expected | measured | verdict |\n| --- | --- | --- | --- | --- |"
    every, findings = [head], [head]
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
            row = f"| `{exhibit.id}` | {cell(claim.statement)} | {expected} | {measured} | {verdict} |"
            every.append(row)
            if claim.verdict == "differs":
                findings.append(row)
            if claim.reason:
                ledger.append(f"| → {cell(claim.reason)} | | | | |")
    Path("docs/ledger.md").write_text("\n".join(ledger) + "\n")
    readme = Path("README.md")
    before, rest = readme.read_text().split(BEGIN)
    table = [
        f"{total}. What differs:\n",
        *findings,
        "\n<details><summary>All of them</summary>\n",
        *every,
    ]
    page = "\n".join([BEGIN, *table, "\n</details>", END])
    readme.write_text(before + page + rest.split(END)[1])
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
