"""The ledger as a page that filters itself, and its one sentence in the README."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ledger.records import Entry, kept
from tacit import exhibits
from tacit.report import words

PAGE, README = Path("docs/ledger.md"), Path("README.md")
BEGIN, END = "<!-- claims: make ledger -->", "<!-- end of claims -->"
FILTERS = ("paper", "source", "regime", "verdict")


def write_pages(entries: Sequence[Entry], judged: str) -> str:
    """Write docs/ledger.md and the README's sentence; returns the sentence."""
    sentence = words.totals([entry.claim for entry in entries])
    made = sorted(
        {
            f"{e.made.scale} scale, seed{'s' * (len(e.made.seeds) > 1)} {listed(e.made.seeds)}, {e.made.machine}"
            for e in entries
        }
    )
    lines = [
        "# Claims ledger\n",
        f"{sentence}.\n",
        "A verdict is decided only where the whole 95% interval of the measurement is on one side of the bar, at "
        "every seed. [How the seeds are chosen](guide/claims.md#the-ledger). "
        "[What each column means](guide/claims.md). The same as [JSON](ledger.json).\n",
        *(f"- {line}\n" for line in made),
        f"\n{larger()}\n",
        f"\n{judged}\n",
        *differences(entries),
        "\n## All claims\n",
        filters(entries),
        table(entries),
        '<script src="../assets/ledger.js"></script>',
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    told = f"{BEGIN}\n{sentence}. [The ledger](docs/ledger.md) has them all.\n{END}"
    README.write_text(before + told + rest.split(END)[1], encoding="utf-8")
    return sentence


def larger() -> str:
    """Which exhibits stand here by a run that is kept in `results`."""
    ids = ", ".join(f"`{id}`" for id in sorted(kept()))
    return f"From larger runs, whose claims, figures and data are in the repository's folder `results`: {ids}."


def differences(entries: Sequence[Entry]) -> list[str]:
    """What differs from a paper, with the reason and what backs it."""
    lines = ["\n## What differs from a paper\n"]
    for entry in entries:
        claim = entry.claim
        if claim.verdict == "differs" and words.in_ledger(claim):
            backed = f" [Why]({entry.backing})." if entry.backing else ""
            lines.append(
                f"- `{entry.key}` ({claim.regime.partition(':')[0]}): {markdown(claim.statement)}. Expected "
                f"{markdown(words.expected(claim))}, measured {words.measured(claim)}. "
                f"{markdown(claim.reason[:1].upper() + claim.reason[1:])}.{backed}"
            )
    return lines


def filters(entries: Sequence[Entry]) -> str:
    """A choice for each of FILTERS, which docs/assets/ledger.js reads."""
    made = []
    for name in FILTERS:
        known = Counter(facets(entry)[name] for entry in entries)
        options = "".join(
            f'<option value="{v}">{v} ({n})</option>' for v, n in sorted(known.items())
        )
        made.append(
            f'<label>{name} <select data-filter="{name}"><option value="">all</option>{options}</select></label>'
        )
    return f'<p class="ledger-filters">{" ".join(made)} <span id="ledger-count"></span></p>\n'


def facets(entry: Entry) -> dict[str, str]:
    """What a row is filtered by."""
    claim = entry.claim
    regime = claim.regime.partition(":")[0]
    return {
        "paper": entry.exhibit.partition(".")[0],
        "source": claim.source,
        "regime": regime,
        "verdict": claim.verdict,
    }


def table(entries: Sequence[Entry]) -> str:
    """All rows, in HTML: a Markdown table has no attributes to filter by."""
    titles = {exhibit.id: exhibit.title for exhibit in exhibits()}
    head = "<tr><th>exhibit</th><th>claim</th><th>expected</th><th>measured</th><th>n</th><th>verdict</th></tr>"
    rows = [f'<table id="ledger"><thead>{head}</thead><tbody>']
    rows += [row(entry, titles.get(entry.exhibit, "")) for entry in entries]
    return "\n".join([*rows, "</tbody></table>"])


def row(entry: Entry, title: str) -> str:
    """One claim with its members, if it is a family."""
    claim = entry.claim
    data = " ".join(f'data-{name}="{escape(value)}"' for name, value in facets(entry).items())
    note = f"{words.origin(claim)} {claim.regime}. {words.note(claim)}".strip()
    members = "".join(
        "<li>{}: expected {}, measured {}</li>".format(*map(escape, words.member(m)))
        for m in claim.members
    )
    cells = (
        f'<span title="{escape(title)}">{entry.exhibit}</span>',
        f"{escape(claim.statement)}<br><small>{escape(f'{claim.where} · {claim.id}')}<br>{escape(note)}</small>"
        + (f"<br><em>{escape(claim.reason)}</em>" if claim.reason else "")
        + (
            f"<details><summary>{len(claim.members)} members</summary><ul>{members}</ul></details>"
            if members
            else ""
        ),
        escape(words.expected(claim)),
        escape(words.measured(claim)),
        words.sample_size(claim),
        f"{words.LOOKS[claim.verdict][0]} {claim.verdict}",
    )
    return f"<tr {data}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def listed(seeds: Sequence[int]) -> str:
    """3 and 7."""
    return " and ".join(map(str, seeds))


def markdown(text: str) -> str:
    """Safe in a line of Markdown."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
