"""The documentation against the code: links, line numbers, commands, examples and lists.

`python tests/test_docs.py` renews the line numbers of links to code, the line counts of the reading path and the tables
of formats and references.
"""

import ast
import contextlib
import doctest
import re
import shlex
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import diffuco
from diffuco.cli import program
from diffuco.evaluation.reference_store import FOLDER as REFERENCE_FOLDER
from diffuco.evaluation.reference_store import read_rows
from diffuco.graphs.datasets import DATASETS
from diffuco.graphs.formats import FORMATS
from diffuco.methods import all_methods
from diffuco.problems import all_problems
from diffuco.training.config import TrainConfig
from diffuco.training.recipes import RECIPES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("experiments/*.md")])
CODE_LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<path>[^)#\s]+\.py)#L(?P<line>\d+)\)")
ANY_LINK = re.compile(r"\]\(([^)\s]+)\)|<(?:img|a)[^>]* (?:src|href)=\"([^\"]+)\"")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READING_PATH = re.compile(r"^\| file \| lines \|.*?^\| all \| \d+ \|", re.MULTILINE | re.DOTALL)
COUNTED_FILE = re.compile(r"^(?P<file>\| \[[\w/.]+\]\((?P<path>[^)]+)\)) \| \d+ \|", re.MULTILINE)
TREE = re.compile(r"^```\n(src/diffuco/ .*?)^```$", re.MULTILINE | re.DOTALL)
TABLE_OF_FORMATS = re.compile(r"(?<=<!-- formats -->\n).*?(?=<!-- end of formats -->)", re.DOTALL)
TABLE_OF_REFERENCES = re.compile(r"(?<=<!-- references -->\n).*?(?=<!-- end of references -->)", re.DOTALL)

for_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@for_every_page
def test_links_to_code_name_the_definition_on_that_line(page):
    wrong = []
    for link in CODE_LINK.finditer(page.read_text()):
        found = definitions((page.parent / link["path"]).resolve()).get(link["name"])
        if found != int(link["line"]):
            wrong.append(f"{link['name']} is on line {found} of {link['path']}, not {link['line']}")
    assert not wrong, "; ".join([*wrong, "run `python tests/test_docs.py`"])


@for_every_page
def test_relative_links_resolve(page):
    text = without_code(page.read_text())
    targets = [first or second for first, second in ANY_LINK.findall(text)]
    broken = [target for target in targets if not re.match(r"https?:|mailto:", target) and not _resolves(page, target)]
    assert not broken


def _resolves(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    return not anchor or file.suffix != ".md" or anchor in _anchors(file.read_text())


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@for_every_page
def test_lines_are_no_longer_than_120_characters(page):
    """Tables, code blocks and the addresses of links may be longer."""
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
    lines = ANY_LINK.sub("]", prose).splitlines()
    too_long = [number for number, line in enumerate(lines, 1) if len(line) > 120 and not line.lstrip().startswith("|")]
    assert not too_long, f"wrap these lines of {page.relative_to(ROOT)}: {too_long}"


def shell_commands() -> list[tuple[str, str]]:
    """Page and command of every line that the documentation tells users to type."""
    found = []
    for page in PAGES:
        for kind, block in FENCE.findall(page.read_text()):
            lines = re.sub(r"\\\n\s*", " ", block).splitlines()
            if kind == "console":
                lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            elif kind != "bash":
                continue
            found += [(page.name, line) for line in lines if line.strip() and not line.startswith("#")]
    return found


@pytest.mark.parametrize(("page", "line"), shell_commands())
def test_shell_commands_parse(page, line):
    from experiments import reproduce  # here, since `python tests/test_docs.py` does not find it
    from experiments.paper.items import ITEMS

    for words in simple_commands(line):
        if "diffuco" in words:  # also after `python -m` and `torchrun ... -m`
            parse(words[words.index("diffuco") + 1 :])
        elif words[:3] == ["python", "-m", "experiments.reproduce"]:
            make_context(typer.main.get_command(reproduce.app), words[3:])
        elif words[:2] == ["python", "-m"] and words[2].startswith("experiments."):
            assert (ROOT / f"{words[2].replace('.', '/')}.py").exists()
        elif words[0] == "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert {word for word in words[1:] if "=" not in word} <= {*targets, *ITEMS}
        elif words[0] == "python":
            assert (ROOT / words[1]).exists()


def simple_commands(line: str) -> list[list[str]]:
    """The commands of a pipeline or list, without redirections and variables set for them.

    >>> simple_commands("A=1 gunzip -c x.gz | diffuco solve mis - > out.json && ls")
    [['gunzip', '-c', 'x.gz'], ['diffuco', 'solve', 'mis', '-'], ['ls']]
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    words = iter(lexer)
    for word in words:
        if word in ("|", "&&", "||", ";", "&"):
            commands.append([])
        elif set(word) <= set("<>"):
            next(words)
        elif commands[-1] or not re.match(r"\w+=", word):
            commands[-1].append(word)
    return [command for command in commands if command]


def parse(arguments: list[str]) -> None:
    """Refuse unknown commands, options and choices, without running anything."""
    if arguments in (["--help"], ["--version"]):
        return
    make_context(typer.main.get_command(program(arguments[0])).commands[arguments[0]], arguments[1:])
    for position, word in enumerate(arguments):
        if word == "--set":
            assert arguments[position + 1].partition("=")[0] in TrainConfig.__dataclass_fields__
    if arguments[0] == "train" and not arguments[1].startswith("-"):
        assert arguments[1] in RECIPES


def make_context(command: Any, arguments: list[str]) -> None:
    with contextlib.suppress(typer.Exit):  # --help and --list print and stop
        command.make_context(command.name, arguments)


def test_parts_of_your_own_train_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = replace(RECIPES["mis-tiny"](), anneal_epochs=1, num_train_graphs=24, num_validation_graphs=4)
    monkeypatch.setattr("diffuco.training.recipes.get_recipe", lambda name: short)
    blocks = [block for kind, block in FENCE.findall((ROOT / "docs/training.md").read_text()) if kind == "python"]
    names: dict[str, Any] = {"__name__": "training"}
    exec("\n".join(blocks), names)
    assert names["model"].card["training"]["network"] == "neighbors"
    assert len(list(tmp_path.glob("runs/*/best.safetensors"))) == 5


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.name)
def test_python_examples_give_the_output_shown(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = [block for kind, block in FENCE.findall(page.read_text()) if kind in ("python", "pycon")]
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert results.attempted
    assert not results.failed, "".join(report)


def test_reading_path_is_short_and_counts_its_lines():
    page = ROOT / "docs/method.md"
    text = page.read_text()
    assert text == with_line_counts(text, page.parent), "run `python tests/test_docs.py`"
    first, *_ = READING_PATH.findall(text)
    assert int(first.split()[-2]) < 1250


def test_reference_has_every_public_name():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert set(diffuco.__all__) - {name.rpartition(".")[2] for name in shown} == {"problems"}
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__


def test_table_of_formats_is_complete():
    assert TABLE_OF_FORMATS.search((ROOT / "docs/solving.md").read_text())[0] == table_of_formats()


def test_table_of_references_is_complete():
    assert TABLE_OF_REFERENCES.search((ROOT / "docs/solving.md").read_text())[0] == table_of_references()


def test_table_of_methods_is_true():
    shown = re.findall(r"^\| `([\w-]+)` \| .* \| (.*) \| (\w+) \| .* \|$", (ROOT / "docs/methods.md").read_text(), re.M)
    every = [problem.name for problem in all_problems()]
    known = []
    for method in all_methods():
        problems = [problem.name for problem in all_problems() if method.solves(problem)]
        named = "all" if problems == every else ", ".join(f"`{name}`" for name in problems)
        known.append((method.name, named, method.time_limit))
    assert shown == known


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_maps_name_what_is_there(page):
    assert [path for path in paths_on_the_map(page) if not path.exists()] == []


def test_map_for_contributors_has_every_package():
    packages = {init.parent for folder in ("src", "experiments") for init in ROOT.glob(f"{folder}/**/__init__.py")}
    assert packages - set(paths_on_the_map("CONTRIBUTING.md")) == set()


def paths_on_the_map(page: str) -> list[Path]:
    """Files and folders of the tree that a page shows."""
    folders, paths = {-1: ROOT}, []
    for line in TREE.search((ROOT / page).read_text())[1].splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        folders[depth] = folders[depth - 1] / name
        paths.append(folders[depth])
    return paths


def definitions(path: Path) -> dict[str, int]:
    """Line of every class, function, method and module or class variable, by name (`Class.method`)."""
    lines: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                lines[prefix + node.name] = node.lineno
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                lines.update({prefix + target.id: node.lineno for target in targets if isinstance(target, ast.Name)})

    visit(ast.parse(path.read_text()).body, "")
    return lines


def table_of_formats() -> str:
    """The formats as a Markdown table."""
    rows = ["| format | suffixes | what it is | keeps | write |", "| --- | --- | --- | --- | --- |"]
    for known in FORMATS:
        suffixes = " ".join(f"`{suffix}`" for suffix in known.suffixes)
        keeps = ", ".join(part.replace("_", " ") for part in sorted(known.holds)) or "-"
        rows.append(
            f"| `{known.name}` | {suffixes} | {known.description} | {keeps} | {'yes' if known.write else 'no'} |"
        )
    return "\n".join(rows) + "\n"


def table_of_references() -> str:
    """How many test graphs have a reference in the package, and how many of these are proven, as a Markdown table."""
    columns = {"`mis`, `mvc`": "mis"} | {f"`{name}`": name for name in ("max-clique", "mds", "max-cut", "qubo")}
    lines = [f"| dataset | {' | '.join(columns)} |", f"|{' --- |' * (1 + len(columns))}"]
    for dataset in DATASETS:
        cells = []
        for problem in columns.values():
            rows = read_rows(REFERENCE_FOLDER / f"{dataset}-{problem}.csv")
            proven = sum(row.reference.proven for row in rows)
            count = "" if proven == len(rows) else f"{len(rows):,}, "
            cells.append(f"{count}{proven:,} proven" if rows else "-")
        lines += [f"| `{dataset}` | {' | '.join(cells)} |"] if set(cells) != {"-"} else []
    return "\n".join(lines) + "\n"


def with_line_counts(text: str, folder: Path) -> str:
    """Tables of files to read, with the present number of lines of every file and of all."""

    def counted(table: re.Match[str]) -> str:
        counts = []

        def with_count(row: re.Match[str]) -> str:
            counts.append(len((folder / row["path"]).read_text().splitlines()))
            return f"{row['file']} | {counts[-1]} |"

        rows = COUNTED_FILE.sub(with_count, table[0])
        return re.sub(r"\| all \| \d+ \|$", f"| all | {sum(counts)} |", rows)

    return READING_PATH.sub(counted, text)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def correct_pages() -> None:
    """Write the right line numbers, line counts and formats into the pages."""
    for page in PAGES:

        def corrected(link: re.Match[str], page: Path = page) -> str:
            line = definitions((page.parent / link["path"]).resolve()).get(link["name"], link["line"])
            return f"[`{link['name']}`]({link['path']}#L{line})"

        text = CODE_LINK.sub(corrected, page.read_text())
        text = TABLE_OF_FORMATS.sub(lambda _: table_of_formats(), text)
        text = TABLE_OF_REFERENCES.sub(lambda _: table_of_references(), text)
        page.write_text(with_line_counts(text, page.parent))


if __name__ == "__main__":
    correct_pages()
