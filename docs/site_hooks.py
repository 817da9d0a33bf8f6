"""What makes a site of the repository's pages: it has their paths, so that links between them work on both.

Links to code lead to pages made of the files, with numbered lines; links to notebooks to what they say and show; links
to folders to lists of what is in them.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md", "experiments/*.md")
PLAIN_SUFFIXES = {".json", ".png", ".gif", ".svg"}
"""Of files that the site offers as they are."""
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(?:#L(\d+))?(?=\))")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
DOCTEST = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".sh": "bash"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the pages of the repository, the pictures and all that pages link to in place of the folder docs."""
    for file in files.documentation_pages() + files.media_files():
        if file.abs_src_path and Path(file.abs_src_path).is_relative_to(config.docs_dir):
            files.remove(file)
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    for path in pages:
        files.append(File.generated(config, _name(path), abs_src_path=str(path)))
    for path in sorted({target for page in pages for target in _targets(page)} - set(pages)):
        if path.is_dir():
            inside = [child for child in sorted(path.iterdir()) if child.suffix in PLAIN_SUFFIXES]
            files.append(File.generated(config, f"{_name(path)}/index.md", content=_list(path, inside)))
            for child in inside:
                _append_plain(files, config, child)
        elif path.suffix in PLAIN_SUFFIXES:
            _append_plain(files, config, path)
        else:
            content = _notebook(path) if path.suffix == ".ipynb" else _numbered(path)
            files.append(File.generated(config, f"{_name(path)}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to code and folders lead to their pages."""
    here = ROOT / page.file.src_uri

    def with_site_link(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(here.parent / link[1]))
        if files.get_file_from_path(f"{_name(target)}.md") is None and not target.is_dir():
            return link[0]
        # Not by the name of the page: mkdocs would look for the line among its headings.
        url = os.path.relpath(f"/{_name(target)}", f"/{page.url}")
        return f"{url}/" + (f"#__codelineno-0-{link[2]}" if link[2] else "")

    parts = _split_code(markdown)
    return "".join(part if is_code else LINK.sub(with_site_link, part) for is_code, part in parts)


class DoctestsAsCode(griffe.Extension):
    """Examples in docstrings are shown as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one docstring."""
        if obj.docstring:
            obj.docstring.value = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)


def _targets(page: Path) -> Iterator[Path]:
    """Files and folders of the repository that a page links to or shows."""
    for is_code, part in _split_code(page.read_text()):
        for link in LINK.finditer("" if is_code else part):
            path = Path(os.path.normpath(page.parent / link[1]))
            if path.exists() and path.is_relative_to(ROOT):
                yield path


def _split_code(markdown: str) -> list[tuple[bool, str]]:
    """The text in parts, each with whether it is a block of code."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [(False, markdown[end : fence.start()]), (True, fence[0])]
        end = fence.end()
    return [*parts, (False, markdown[end:])]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _append_plain(files: Files, config: MkDocsConfig, path: Path) -> None:
    if files.get_file_from_path(_name(path)) is None:
        files.append(File.generated(config, _name(path), abs_src_path=str(path)))


def _list(folder: Path, inside: list[Path]) -> str:
    return "\n".join([f"# {_name(folder)}", "", *(f"- [{path.name}]({path.name})" for path in inside)])


def _numbered(path: Path) -> str:
    """A page of code that the search leaves out."""
    header = ["---", "search: {exclude: true}", "hide: [toc]", "---", f"# {_name(path)}", ""]
    fence = "`" * 8
    return "\n".join([*header, f'{fence}{LANGUAGES.get(path.suffix, "text")} linenums="1"', path.read_text(), fence])


def _notebook(path: Path) -> str:
    """A page of what a notebook says and of the output that is kept in it."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                parts.append(f"![](data:image/png;base64,{''.join(data['image/png']).replace(chr(10), '')})")
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts)
