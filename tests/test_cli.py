"""The command line: exit statuses, one line for what went wrong, pure JSON, tables for people."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import fakes
from contract import check_document, check_page
from fakes import odd_raises
from tacit.cli import status
from tacit.cli.lines import print_json
from tacit.lab.registry import catalogue
from tacit.report.cite import TACIT

ROOT = Path(__file__).resolve().parents[1]
MEAN = ["run", "toy2020.mean", "--scale", "smoke"]

pytestmark = pytest.mark.usefixtures("only_fakes")
Capture = pytest.CaptureFixture[str]


def one_line(capsys: Capture) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("tacit: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["fly"], "no such command 'fly'; see `tacit --help`"),
        (["run"], "missing argument 'ID'; see `tacit run --help`"),
        (["show"], "missing argument 'ID'; see `tacit show --help`"),
        (["list", "x"], "unexpected extra argument"),
        (["run", "toy2020.mean", "--speed", "9"], "no such option: --speed"),
        (["run", "toy2020.mean", "--seed"], "--seed' requires an argument"),
        (["run", "toy2020.mean", "--seed", "x"], "seed takes a whole number from 0 on"),
        (["run", "toy2020.mean", "--seed", "-1"], "got '-1'"),
        (["run", "toy2020.mean", "--scale", "big"], "scale 'big' is none of smoke, laptop, paper"),
        (["run", "toy2020.mean", "--device", "tpu"], "device 'tpu' is none of auto, cpu, cuda"),
        (["run", "toy2020.men"], "there is no exhibit 'toy2020.men'; near: toy2020.mean"),
        (["run", "toy2020"], "toy2020 is a paper: `tacit verify toy2020` runs all of it"),
        (["run", "toy2020.mean", "nothing"], "there is no exhibit 'nothing'"),
        (["show", "toy2020.men"], "near: toy2020.mean"),
        (["verify", "toy2020.mean"], "is an exhibit: `tacit run toy2020.mean` runs it"),
        (["verify", "toy202"], "there is no paper 'toy202'; near: toy2020"),
        (["cite", "toy202"], "there is no paper 'toy202'; near: toy2020"),
        ([*MEAN, "--set", "k=1"], "there is no setting 'k'; near: K, K1"),
        ([*MEAN, "--set", "K=x"], "K takes a whole number, as in --set K=4; got 'x'"),
        ([*MEAN, "--set", "K"], "--set takes key=value"),
        ([*MEAN, "--set", "K1=9"], "tacit: K1=9 must be between 1 and K=4"),
        ([*MEAN, "home2019.only", "--set", "K1=9"], "tacit: toy2020.mean: K1=9 must be between"),
        ([*MEAN, "--out", ""], "--out takes a folder, as in --out runs; got ''"),
        (["verify", "--out", ""], "--out takes a folder"),
        (["show", "toy2020.mean", "--out", ""], "--out takes a folder"),
        (["show", "toy2020"], "toy2020 is a paper: `tacit list` shows its exhibits"),
    ],
)
def test_a_wrong_call_is_one_line(arguments: list[str], answer: str, capsys: Capture) -> None:
    assert status(arguments) == 2
    assert answer in one_line(capsys)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("odd2021.raises", "could not run: ZeroDivisionError: a fault of two lines (traceback in "),
        ("odd2021.absent", "is broken: importing fakes.nowhere.deep failed"),
        ("odd2021.empty", "has no function run and draw; mend or uninstall that package"),
    ],
)
def test_a_broken_exhibit_is_one_line(id: str, answer: str, capsys: Capture) -> None:
    assert status(["run", id]) == 1
    assert answer in one_line(capsys)


def test_out_that_cannot_be_written_is_one_line(capsys: Capture) -> None:
    Path("file").touch()
    assert status(["verify", "--out", "file"]) == 1
    assert "file is a file, not a folder: choose another --out" in one_line(capsys)


def test_out_with_a_name_that_is_too_long_is_one_line(capsys: Capture) -> None:
    out = ["--out", "x" * 300]
    assert status([*MEAN, *out]) == 1
    assert "cannot be written (File name too long): choose another --out" in one_line(capsys)
    assert status(["show", "toy2020.mean", *out]) == 0
    printed = capsys.readouterr()
    assert "The mean of noise" in printed.out
    (line,) = printed.err.splitlines()
    assert "cannot be read (File name too long): choose another --out" in line


def test_an_exhibit_that_exits_does_not_end_the_others(
    only_fakes: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odd_raises, "run", lambda config, bench: sys.exit(0))
    assert status(["verify", "odd2021", "toy2020", "--scale", "smoke"]) == 1
    printed = capsys.readouterr()
    assert "exhibit odd2021.raises could not run: SystemExit: 0" in printed.err
    assert "toy2020.mean" in printed.out


def test_another_run_is_replaced_with_a_word(capsys: Capture) -> None:
    def told(*arguments: str) -> list[str]:
        assert status([*MEAN, *arguments, "--json"]) == 0
        printed = capsys.readouterr()
        check_document(printed.out, smoke=True)
        return [line for line in printed.err.splitlines() if line.startswith("tacit:")]

    assert told() == told() == told("--fresh") == []
    assert told("--seed", "1") == [
        "tacit: replaces the smoke run, seed 0, in runs/toy2020.mean; another --out keeps both"
    ]


def shell(command: str, site: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a shell of its own, where streams are what the shell makes them."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", site)))
    python = shlex.quote(sys.executable)
    return subprocess.run(
        ["sh", "-c", command.replace("tacit", f"{python} -m tacit", 1)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("tacit list >&-", "tacit: stdout is closed: send it to a file or to /dev/null"),
        ("tacit list >/dev/full", "tacit: stdout cannot be written (No space left on device)"),
        ("tacit --version >/dev/full", "tacit: stdout cannot be written (No space left on device)"),
        ("tacit list --json >/dev/full", "tacit: stdout cannot be written (No space left on"),
    ],
)
def test_stdout_that_takes_nothing_is_one_line(command: str, answer: str, only_fakes: Path) -> None:
    done = shell(command, only_fakes)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(answer)


def test_a_closed_stderr_is_borne(only_fakes: Path) -> None:
    done = shell("tacit run nothing 2>&-", only_fakes)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_terminal_that_knows_only_ascii(only_fakes: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = shell("tacit run toy2020.mean --scale smoke", only_fakes, **ascii_only)
    assert done.returncode == 0, done.stderr
    assert "? holds" in done.stdout
    done = shell("tacit show toy2020.mean --json", only_fakes, **ascii_only)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["seed"] == 0


def test_json_is_ascii(capsys: Capture) -> None:
    print_json({"title": "α ≥ β"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == {"title": "α ≥ β"}


def test_a_broken_package_is_warned_of_and_told_when_asked_for(
    only_fakes: Path, capsys: Capture
) -> None:
    fakes.install(only_fakes, broken1999="fakes.broken")
    assert status(["list"]) == 0
    printed = capsys.readouterr()
    assert "toy2020.mean" in printed.out
    (warning,) = printed.err.splitlines()
    assert warning.startswith("tacit: warning: exhibits of 'broken1999' are left out: RuntimeError")
    assert status(["run", "broken1999.fig1"]) == 1
    assert "broken1999.fig1 cannot be had" in one_line(capsys)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help(arguments: list[str], capsys: Capture) -> None:
    assert status(arguments) == 0
    printed = capsys.readouterr()
    assert all(name in printed.out for name in ("list", "show", "run", "verify", "cite"))
    assert printed.err == ""


def test_version(capsys: Capture) -> None:
    assert status(["--version"]) == 0
    assert capsys.readouterr().out == "0.1.0\n"


def test_list(capsys: Capture) -> None:
    assert status(["list"]) == 0
    assert "toy2020.mean" in capsys.readouterr().out
    assert status(["list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [paper["key"] for paper in document["papers"]] == ["home2019", "toy2020", "odd2021"]
    assert document["exhibits"][1] == {
        "id": "toy2020.mean",
        "paper": "toy2020",
        "title": "The mean of noise",
        "where": "Theorem 1.2",
        "claim": "The mean of n draws is within 3 alpha / sqrt(n) of zero.",
    }


def test_show_before_and_after_a_run(capsys: Capture) -> None:
    assert status(["show", "toy2020.mean"]) == 0
    shown = capsys.readouterr().out
    for told in ("Theorem 1.2", "smoke", "laptop", "paper", "0.1, 0.2, 0.3", "tacit run toy2020"):
        assert told in shown
    assert "holds" not in shown
    assert status(MEAN) == 0
    capsys.readouterr()
    assert status(["show", "toy2020.mean"]) == 0
    assert "✓ holds" in capsys.readouterr().out
    assert status(["show", "toy2020.mean", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scales"]["paper"]["K"] == 10
    assert document["run"]["seed"] == 0


def test_show_tells_of_a_damaged_run(capsys: Capture) -> None:
    Path("runs/toy2020.mean").mkdir(parents=True)
    assert status(["show", "toy2020.mean"]) == 0
    printed = capsys.readouterr()
    assert "The mean of noise" in printed.out
    assert "is damaged: provenance.json is missing; --fresh runs it anew" in printed.err


def test_run_prints_a_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert status([*MEAN, "--set", "alpha=.1,.2"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for told in ("✓ holds", "✗ differs", "○ not testable", "4 claims: 1 hold, 1 differ, 2 not"):
        assert told in printed
    assert printed.splitlines()[-1] == "report: runs/toy2020.mean/report.html"


def test_a_narrow_terminal_gets_lists(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in (["list"], MEAN):
        assert status(arguments) == 0
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= 40
        assert "toy2020.mean" in printed
        assert "…" not in printed
    lines = [line.rstrip() for line in printed.splitlines()]
    at = lines.index("✗ differs")
    assert lines[at + 1 : at + 3] == ["  1 + 1 = 3", "  toy2020.mean.odd · Theorem 1.2 ·"]
    assert "  expected 3, measured 2, n 1" in lines


def test_ids_are_whole_in_a_list(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    long = "toy2020." + "an-id-of-many-words" * 3
    exhibit = replace(catalogue().find("toy2020.mean"), id=long, title="many words " * 9)
    monkeypatch.setitem(catalogue().exhibits, long, exhibit)
    assert status(["list"]) == 0
    assert long in capsys.readouterr().out


def test_json_is_all_there_is_on_stdout(capsys: Capture) -> None:
    arguments = [*MEAN, "odd2021.raises", "--seed", "3", "--out", "some/where", "--json"]
    assert status(arguments) == 1
    printed = capsys.readouterr()
    (run,) = check_document(printed.out, smoke=True)
    assert (run["id"], run["scale"], run["seed"]) == ("toy2020.mean", "smoke", 3)
    assert run["folder"] == "some/where/toy2020.mean"
    assert "tacit: exhibit odd2021.raises could not run" in printed.err


def test_one_exhibit_named_twice_is_run_once(capsys: Capture) -> None:
    assert status([*MEAN, "toy2020.mean", "--json"]) == 0
    assert len(check_document(capsys.readouterr().out, smoke=True)) == 1


def test_verify_all_papers(capsys: Capture) -> None:
    assert status(["verify", "--scale", "smoke"]) == 1  # two run, three cannot
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[-2:] == [
        "8 claims: 2 hold, 2 differ, 4 not testable here",
        "report: runs/report.html",
    ]
    assert len(printed.err.splitlines()) >= 3
    page = Path("runs/report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "Could not run" in page


def test_verify_runs_exhibits_side_by_side_and_tells_the_same(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for cores in (1, 2):
        monkeypatch.setattr("tacit.base.threads.cores", lambda cores=cores: cores)
        order = [
            "verify",
            "odd2021",
            "toy2020",
            "--scale",
            "smoke",
            "--out",
            f"on-{cores}",
            "--json",
        ]
        assert status(order) == 1
        printed = capsys.readouterr()
        runs = check_document(printed.out, smoke=True)
        lines = [line for line in printed.err.splitlines() if line.startswith("tacit: exhibit odd")]
        told.append(([(run["id"], run["claims"]) for run in runs], [line[:60] for line in lines]))
    assert told[0] == told[1]
    assert len(told[0][1]) == 3


def test_a_worker_keeps_to_one_core_and_ends_with_the_command_that_was_killed() -> None:
    script = (
        "import multiprocessing as m, os, time\n"
        "from tacit.base.threads import cores\n"
        "from tacit.cli.several import _begin\n"
        "def hold(parent):\n    _begin(None, parent)\n"
        "    open('cores.new', 'w').write(str(cores()))\n    os.rename('cores.new', 'cores.txt')\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    child = m.get_context('spawn').Process(target=hold, args=(os.getpid(),))\n"
        "    child.start()\n    print(child.pid, flush=True)\n"
        "    while not os.path.exists('cores.txt'):\n        time.sleep(0.1)\n"
        "    time.sleep(1)\n    os._exit(9)\n"
    )
    Path("killed.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "killed.py"], capture_output=True, text=True, check=False, timeout=120
    )
    child = int(done.stdout)
    assert Path("cores.txt").read_text() == "1"
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(child, 9)
    raise AssertionError("the worker goes on")


def test_verify_one_paper_as_json(capsys: Capture) -> None:
    assert status(["verify", "toy2020", "--scale", "smoke", "--json"]) == 0
    (run,) = check_document(capsys.readouterr().out, smoke=True)
    assert run["id"] == "toy2020.mean"
    assert Path("runs/report.html").exists()


def test_cite(capsys: Capture) -> None:
    for arguments, papers in (
        (["cite"], ["home2019", "toy2020", "odd2021"]),
        (["cite", "toy2020.mean", "toy2020"], ["toy2020"]),
    ):
        assert status(arguments) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(TACIT)
        assert printed.count("@article") == len(papers)
        assert all(f"@article{{{key}" in printed for key in papers)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("run toy", "toy2020.mean"),
        ("show toy", "toy2020.mean"),
        ("verify to", "toy2020"),
        ("cite to", "toy2020.mean"),
        ("run toy2020.mean --scale sm", "smoke"),
    ],
)
def test_completion(
    typed: str, offered: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"tacit {typed}"
    monkeypatch.setenv("_TACIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        status([])
    assert offered in capsys.readouterr().out.split()


def test_python_m_tacit() -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "run", "nothing"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tacit: there is no exhibit 'nothing'")


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("2", "2")])
def test_one_thread_unless_the_user_says_otherwise(given, used):
    code = (
        "import atexit, os; from tacit.cli import main; "
        "atexit.register(lambda: print(os.environ['OMP_NUM_THREADS'])); main(['--version'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": given} if given else {}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == used
