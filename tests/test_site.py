"""The documentation builds as a site that is complete and asks the internet for nothing."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
load_config = pytest.importorskip("mkdocs.config").load_config

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?(https?:|//)|<link[^>]* href=\"?(https?:|//)[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What `make docs` builds; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site):
    assert (site / "index.html").exists()
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / page.stem / "index.html").exists()


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in config]
    assert not missing, f"add {missing} to nav in mkdocs.yml"


def test_every_page_links_to_the_repository_if_its_address_is_given(monkeypatch):
    monkeypatch.setenv("REPOSITORY", "https://example.org/diffuco")
    assert load_config(str(ROOT / "mkdocs.yml")).repo_url == "https://example.org/diffuco"
    monkeypatch.delenv("REPOSITORY")
    assert not load_config(str(ROOT / "mkdocs.yml")).repo_url


def test_nothing_is_fetched_from_the_internet(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not FETCHED.search(text), page
        assert "fonts.googleapis" not in text


def test_links_within_the_site_resolve(site):
    broken = []
    text_of = cache(Path.read_text)
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        article = text_of(page).partition("<article")[2].partition("</article>")[0]
        for path, anchor in re.findall(r"href=\"(?!\w+:)([^\"#]*)(?:#([^\"]*))?\"", article):
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and f'id="{anchor}"' not in text_of(target)):
                broken.append(f"{page.relative_to(site)}: {path}#{anchor}")
    assert not broken


def test_links_to_code_lead_to_the_line_of_the_definition(site):
    page = (site / "docs/method/index.html").read_text()
    links = re.findall(r'href="../../([\w/]+\.py)/#(__codelineno-0-\d+)"><code>([\w.]+)</code>', page)
    assert len(links) > 50
    for path, anchor, name in links:
        code = (site / path / "index.html").read_text()
        line = re.sub("<[^>]+>", "", code.partition(f'id="{anchor}"')[2].partition("\n")[0])
        assert name.rpartition(".")[2] in line, (path, anchor)


def test_reference_has_docstrings_with_their_examples(site):
    page = (site / "docs/api/index.html").read_text()
    for name in ("solve", "Solver", "Solution", "Graph", "read_graph", "load_model", "DiffUCOSampler"):
        assert re.search(rf'id="diffuco\.[\w.]*{name}"', page), name
    assert "five_cycle" in page
    assert "<blockquote>" not in page


def test_notebooks_are_shown_with_their_output(site):
    page = (site / "examples/reverse_diffusion.ipynb/index.html").read_text()
    assert "data:image/png;base64," in page
    assert "reverse steps, 16 samples" in page
