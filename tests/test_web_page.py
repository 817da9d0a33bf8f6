"""The page of `diffuco serve`, driven by a real Chromium as a person would."""

import base64
import gzip
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from diffuco.cli import main
from diffuco.graphs.formats import write_graph
from diffuco.graphs.generate import ba_graph
from diffuco.web.app import create_app
from diffuco.web.events import JobEvents
from diffuco.web.limits import Limits
from serving import serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

GRAPH = Path(__file__).parents[1] / "examples/rb-small.clq"
FIVE_CYCLE = "Ann Bob\nBob Cid\nCid Dan\nDan Eve\nEve Ann\n"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def address(models) -> Iterator[str]:
    with serving(create_app(Limits(), models=[str(path) for path in models.values()], device="cpu")) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    # Chromium refuses its sandbox to root.
    options = {"args": ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []}
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, **options)
        except playwright.Error as error:
            pytest.skip(f"no Chromium to drive: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address) -> Iterator["playwright.Page"]:
    """The page with its first graph drawn; nothing may go wrong on it, nor be asked of anybody else."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, accept_downloads=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
    page.on("request", lambda request: None if _is_own(request.url, address) else problems.append(request.url))
    page.goto(address)
    page.wait_for_selector("html[data-layout]")
    yield page
    context.close()
    assert not problems


def _is_problem(message: "playwright.ConsoleMessage") -> bool:
    # Chromium logs refused requests as errors.
    return message.type == "error" and "status of 4" not in message.text


def _is_own(url: str, address: str) -> bool:
    return url.startswith((address, "blob:", "data:"))


def _paste(page: "playwright.Page", edges: str) -> None:
    page.click(".paste summary")
    page.fill("#pasted", edges)
    page.click("#use-pasted")
    playwright.expect(page.locator("#about-graph")).to_contain_text("pasted")


def _places(page: "playwright.Page") -> np.ndarray:
    """Where the nodes or groups are, one row for each."""
    places = page.evaluate("(async () => Array.from((await import('/static/app.js')).positions()))()")
    return np.array(places).reshape(-1, 2)


def _on_canvas(page: "playwright.Page", place: tuple[float, float]) -> tuple[float, float]:
    """A place on the page, given from the middle of the graph's canvas."""
    page.locator("#graph").scroll_into_view_if_needed()
    box = page.locator("#graph").bounding_box()
    return box["x"] + box["width"] / 2 + place[0], box["y"] + box["height"] / 2 + place[1]


def _solve(page: "playwright.Page") -> None:
    page.select_option("#speed", "fast")
    page.click("#solve")
    page.wait_for_selector("html[data-answer]", timeout=60_000)


def test_a_dimacs_file_is_played_and_its_objective_is_that_of_the_api(page, address, tmp_path):
    page.set_input_files("#file", GRAPH)
    playwright.expect(page.locator("#about-graph")).to_contain_text("207 nodes, 3,261 edges")
    page.fill("#samples", "3")
    page.fill("#seed", "4")
    _solve(page)
    graph = {"kind": "text", "text": GRAPH.read_text(), "name": GRAPH.name}
    body = {"problem": "mis", "graph": graph, "samples": 3, "seed": 4}
    answer = httpx.post(f"{address}/api/solve", json=body, timeout=60).json()
    assert page.inner_text("#objective") == str(answer["objective"])
    assert page.inner_text("#feasible") == "feasible, checked independently"
    assert "greedy" in page.inner_text("#comparison")
    assert page.inner_text("#live").endswith(f"{answer['objective']} in the set · 0 broken")

    with page.expect_download() as download:
        page.click("text=Download JSON")
    path = tmp_path / "solution.json"
    download.value.save_as(path)
    assert json.loads(path.read_text())["solution"] == answer["solution"]
    assert main(["check", "mis", str(GRAPH), str(path)]) == 0


def test_the_steps_can_be_played_by_keyboard(page):
    _solve(page)
    assert page.inner_text("#step") == "decoded"
    assert page.locator(".thumb").count() == 8
    page.locator("#graph").focus()
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#step") == "step 6 of 6"
    page.keyboard.press("3")
    assert page.locator(".thumb").nth(2).get_attribute("aria-checked") == "true"
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert page.inner_text("#step") == "noise"
    page.keyboard.press(" ")
    playwright.expect(page.locator("#step")).to_have_text("decoded")
    page.locator("#solve").focus()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#step")).to_have_text("decoded", timeout=30_000)


def test_play_solves_what_is_not_solved(page):
    page.select_option("#speed", "fast")
    page.click("#play")
    page.wait_for_selector("html[data-answer]", timeout=60_000)


def test_every_problem_can_be_watched(page):
    for problem in ("mvc", "max-clique", "max-cut", "mds", "qubo"):
        page.check(f"input[value={problem}]", force=True)
        playwright.expect(page.locator("html:not([data-answer])")).to_be_attached()
        _solve(page)
        assert page.inner_text("#feasible") == "feasible, checked independently"


def test_a_solve_can_be_stopped(page, address, monkeypatch):
    stopped, tell_step = threading.Event(), JobEvents._on_step

    def tell_and_wait(events, batch, step):
        """No step after the first before the page has stopped the solve, however slow the page is."""
        tell_step(events, batch, step)
        stopped.wait(60)

    def num_abandoned() -> float:
        metrics = httpx.get(f"{address}/metrics").text
        return float(re.search(r"^diffuco_abandoned_total (.*)$", metrics, re.MULTILINE).group(1))

    monkeypatch.setattr(JobEvents, "_on_step", tell_and_wait)
    before = num_abandoned()
    try:
        page.click("#solve")
        playwright.expect(page.locator("#solve")).to_have_text("Stop")
        playwright.expect(page.locator("#step")).not_to_have_text("not solved yet")
        page.click("#solve")
        playwright.expect(page.locator("#solve")).to_have_text("Solve and watch")
        for _ in range(200):
            if num_abandoned() > before:
                return
            page.wait_for_timeout(50)
        pytest.fail("the server goes on with a solve that was stopped")
    finally:
        stopped.set()


def test_a_packed_file_can_be_dropped(page, house):
    content = base64.b64encode(gzip.compress(house.read_bytes())).decode()
    dropped = page.evaluate_handle(
        """async (content) => {
            const transfer = new DataTransfer();
            const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
            transfer.items.add(new File([bytes], "house.clq.gz"));
            return transfer;
        }""",
        content,
    )
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    playwright.expect(page.locator("#about-graph")).to_contain_text("5 nodes, 6 edges")


def test_what_is_wrong_with_a_file_is_said(page, tmp_path):
    path = tmp_path / "broken.clq"
    path.write_text("p edge 3 1\ne 1 9\n")
    page.set_input_files("#file", path)
    playwright.expect(page.locator("#graph-message")).to_contain_text("broken.clq:2: 9 is not a node")


def test_the_format_is_asked_for_where_the_name_does_not_tell_it(page, house, tmp_path):
    playwright.expect(page.locator("#format")).to_be_hidden()
    unnamed = house.rename(tmp_path / "house.data")
    page.set_input_files("#file", unnamed)
    playwright.expect(page.locator("#graph-message")).to_contain_text("the name does not tell the format")
    page.get_by_label("Read house.data as").focus()
    page.keyboard.type("dimacs")  # by keyboard
    playwright.expect(page.locator("#about-graph")).to_contain_text("5 nodes, 6 edges")
    playwright.expect(page.locator("#about-format")).to_contain_text("p edge N M")
    playwright.expect(page.locator("#graph-message")).to_be_empty()
    _solve(page)
    assert page.inner_text("#objective") == "2"

    page.select_option("#format", "graphml")  # a wrong choice leaves no graph and can be mended
    playwright.expect(page.locator("#graph-message")).to_contain_text("house.data")
    playwright.expect(page.locator("#about-graph")).to_be_empty()
    page.select_option("#format", "dimacs")
    playwright.expect(page.locator("#graph-message")).to_be_empty()
    page.click("#draw")
    playwright.expect(page.locator("#format")).to_be_hidden()


def test_the_format_of_a_txt_can_be_corrected(page, tmp_path):
    path = tmp_path / "path.txt"
    path.write_text("3 2\n2\n1 3\n2\n")
    page.set_input_files("#file", path)
    page.select_option("#format", "metis")
    playwright.expect(page.locator("#about-graph")).to_contain_text("3 nodes, 2 edges")
    named = path.rename(tmp_path / "path.graph")
    page.set_input_files("#file", named)
    playwright.expect(page.locator("#format")).to_be_hidden()


def test_a_model_can_be_chosen(page, address):
    cards = httpx.get(f"{address}/api/models").json()["models"]
    for problem in ("mis", "mds"):
        page.check(f"input[value={problem}]", force=True)
        names = [card["name"] for card in cards if card["problem"] == problem]
        assert page.locator("#model option").all_inner_texts() == ["automatic", *names]
        assert page.input_value("#model") == ""
    page.locator("#model").select_option("mds-ba-small")
    playwright.expect(page.locator("#about-model")).to_contain_text("Trained on Barabási-Albert graphs of 200 to 300")
    page.fill("#samples", "1")
    page.fill("#factor", "1")
    _solve(page)
    assert "found by mds-ba-small, 1 sample, " in page.inner_text("#answer")
    page.check("input[value=mis]", force=True)
    assert page.input_value("#model") == ""
    playwright.expect(page.locator("#about-model")).to_contain_text("Chosen to suit the graph")


def test_a_graph_of_2000_nodes_is_laid_out_off_the_main_thread(page, tmp_path):
    path = tmp_path / "large.edges"
    write_graph(ba_graph(2000, 3, np.random.default_rng(0)), path)
    before = page.get_attribute("html", "data-layout")
    page.set_input_files("#file", path)
    playwright.expect(page.locator("#about-graph")).to_contain_text("2,000 nodes")
    playwright.expect(page.locator("html")).not_to_have_attribute("data-layout", before, timeout=60_000)
    page.fill("#samples", "2")
    _solve(page)
    assert page.inner_text("#feasible") == "feasible, checked independently"


def test_nothing_sticks_out_at_the_side(page):
    _solve(page)
    for width, height in ((1366, 768), (900, 1100), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_theme_is_kept(page):
    theme = page.get_attribute("html", "data-theme")
    page.click("#theme")
    other = page.get_attribute("html", "data-theme")
    assert {theme, other} == {"light", "dark"}
    page.reload()
    assert page.get_attribute("html", "data-theme") == other


def test_edges_can_be_pasted_and_proven(page):
    _paste(page, FIVE_CYCLE)
    playwright.expect(page.locator("#about-graph")).to_contain_text("5 nodes, 5 edges")
    page.select_option("#method", "auto")
    playwright.expect(page.locator("#samples")).to_be_hidden()
    assert page.inner_text("#solve") == "Solve"
    page.click("#solve")
    page.wait_for_selector("html[data-answer]", timeout=60_000)
    assert (page.inner_text("#objective"), page.inner_text("#proof")) == ("2", "proven optimal")
    assert (page.inner_text("#step"), page.inner_text("#message")) == ("solved", "")
    assert page.inner_text("#live").endswith("2 in the set · 0 broken")


def test_a_small_cycle_is_drawn_as_a_circle(page):
    order = [0, 5, 2, 7, 4, 1, 6, 3]  # not that of the numbers
    before = page.get_attribute("html", "data-layout")
    _paste(page, "".join(f"{u} {v}\n" for u, v in zip(order, [*order[1:], order[0]], strict=True)))
    page.wait_for_selector(f"html[data-layout]:not([data-layout='{before}'])")
    places = _places(page)[order]
    center = places.mean(0)
    angles = np.unwrap(np.arctan2(*(places - center).T))
    turns = np.diff(angles)
    assert (np.sign(turns) == np.sign(turns[0])).all()  # around the centre, without a crossing
    radii = np.linalg.norm(places - center, axis=1)
    assert radii.max() < 1.3 * radii.min()


def test_nodes_of_a_small_graph_carry_their_names(page):
    page.evaluate(
        """() => {
            window.written = new Set();
            const fillText = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
                window.written.add(text);
                fillText.call(this, text, ...place);
            };
        }"""
    )
    _paste(page, "Ann Bob\nBob Cid\n")
    page.wait_for_function("() => ['Ann', 'Bob', 'Cid'].every((name) => window.written.has(name))")


@pytest.mark.parametrize(("method", "proof"), [("cp-sat", "proven optimal"), ("anneal", "")])
def test_another_method_says_what_it_proves(page, method, proof):
    if method == "cp-sat":
        pytest.importorskip("ortools", reason="OR-Tools is not installed")
    _paste(page, FIVE_CYCLE)
    page.select_option("#method", method)
    _solve(page)
    assert (page.inner_text("#objective"), page.inner_text("#proof")) == ("2", proof)
    assert f"found by {method}" in page.inner_text("#answer")


def test_a_bound_without_a_proof_is_shown(page):
    def with_bound(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"optimal": False, "bound": 3, "gap": 0.5})

    page.route("**/api/solve", with_bound)
    _paste(page, FIVE_CYCLE)
    page.select_option("#method", "greedy")
    _solve(page)
    assert page.inner_text("#proof") == "nothing is better than 3, at most 50 % better"


def test_samples_of_a_small_graph_are_proven_optimal(page):
    _paste(page, FIVE_CYCLE)
    _solve(page)
    playwright.expect(page.locator("#proof")).to_have_text("proven optimal", timeout=60_000)


def test_a_model_that_fails_on_a_graph_is_told(page):
    page.set_input_files("#file", GRAPH)
    playwright.expect(page.locator("#about-graph")).to_contain_text("207 nodes")
    page.uncheck("#refine")
    page.fill("#samples", "1")
    _solve(page)
    assert page.inner_text("#comparison") == "not as good as greedy: this model does not suit the graph"
    assert page.inner_text("#alone") == ""
    page.check("#refine")
    playwright.expect(page.locator("#solve")).to_have_text("Solve and watch")
    page.click("#solve")
    playwright.expect(page.locator("#alone")).to_contain_text("samples alone are not as good as greedy", timeout=60_000)


def test_a_graph_is_drawn_with_the_mouse(page):
    about = page.locator("#about-graph")
    page.click("#by-hand")
    playwright.expect(about).to_have_text("drawing 0 nodes, 0 edges")
    assert page.is_disabled("#solve")
    left, right, top = (-90, 40), (90, 40), (0, -60)
    for place in (left, right, top):
        page.mouse.click(*_on_canvas(page, place))
    playwright.expect(about).to_have_text("drawing 3 nodes, 0 edges")
    for start, end in ((left, top), (top, right)):
        page.mouse.move(*_on_canvas(page, start))
        page.mouse.down()
        page.mouse.move(*_on_canvas(page, end), steps=3)
        page.mouse.up()
    playwright.expect(about).to_have_text("drawing 3 nodes, 2 edges")
    page.mouse.click(*_on_canvas(page, right))
    page.mouse.click(*_on_canvas(page, left))
    playwright.expect(about).to_have_text("drawing 3 nodes, 3 edges")
    _solve(page)
    assert page.inner_text("#objective") == "1"

    page.mouse.click(*_on_canvas(page, left))  # to pick a node keeps the answer, to part it from another does not
    assert page.inner_text("#objective") == "1"
    page.mouse.click(*_on_canvas(page, top))
    playwright.expect(about).to_have_text("drawing 3 nodes, 2 edges")
    assert page.locator("#objective").count() == 0
    page.check("input[value=mvc]", force=True)  # another problem keeps the drawing
    _solve(page)
    assert page.inner_text("#objective") == "1"
    page.mouse.click(*_on_canvas(page, right))
    page.click("#remove")
    playwright.expect(about).to_have_text("drawing 2 nodes, 0 edges")
    page.click("#undo")
    playwright.expect(about).to_have_text("drawing 3 nodes, 2 edges")
    page.mouse.click(*_on_canvas(page, top))
    page.keyboard.press("Delete")
    playwright.expect(about).to_have_text("drawing 2 nodes, 1 edge")
    page.click("#clear")
    playwright.expect(about).to_have_text("drawing 0 nodes, 0 edges")
    page.click("#undo")
    page.click("#undo")
    page.click("#draw")
    playwright.expect(about).to_contain_text("84 nodes")
    playwright.expect(page.locator("#undo")).to_be_hidden()
    page.click("#by-hand")
    playwright.expect(about).to_have_text("drawing 3 nodes, 2 edges")


def test_a_graph_is_drawn_with_a_finger(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-layout]")
    page.tap("#by-hand")
    for place in [(-90, 60), (90, 60)] * 2:  # first two nodes, then the edge between them
        page.touchscreen.tap(*_on_canvas(page, place))
    playwright.expect(page.locator("#about-graph")).to_have_text("drawing 2 nodes, 1 edge")
    context.close()


def test_of_a_graph_of_6000_nodes_a_coarse_picture_is_drawn(page, tmp_path):
    path = tmp_path / "large.edges"
    write_graph(ba_graph(6000, 2, np.random.default_rng(0)), path)
    before = page.get_attribute("html", "data-layout")
    page.set_input_files("#file", path)
    playwright.expect(page.locator("#about-graph")).to_contain_text("6,000 nodes", timeout=60_000)
    playwright.expect(page.locator("html")).not_to_have_attribute("data-layout", before, timeout=60_000)
    playwright.expect(page.locator("#about-graph")).to_contain_text("a dot is about 4 nodes")
    assert 1000 < len(_places(page)) <= 2000
    page.fill("#samples", "2")
    page.fill("#factor", "1")
    _solve(page)
    assert page.inner_text("#feasible") == "feasible, checked independently"
    assert page.locator(".thumb").count() == 2
    assert page.inner_text("#legend") == "more nodes: in the set"


def test_a_large_graph_gets_fewer_samples_unless_they_are_chosen(page, tmp_path):
    path = tmp_path / "star.edges"
    path.write_text("".join(f"0 {leaf}\n" for leaf in range(1, 40_000)))
    page.set_input_files("#file", path)
    playwright.expect(page.locator("#about-graph")).to_contain_text("a dot is about", timeout=60_000)
    assert page.input_value("#samples") == "3"
    page.click("#draw")
    playwright.expect(page.locator("#about-graph")).to_contain_text("84 nodes")
    assert page.input_value("#samples") == "8"
    page.fill("#samples", "5")
    page.set_input_files("#file", path)
    playwright.expect(page.locator("#about-graph")).to_contain_text("a dot is about", timeout=60_000)
    assert page.input_value("#samples") == "5"


def test_after_an_error_neither_graph_nor_answer_stays(page, tmp_path):
    _solve(page)
    (tmp_path / "bad.clq").write_text("p edge 2 1\ne 1 9\n")
    page.set_input_files("#file", tmp_path / "bad.clq")
    playwright.expect(page.locator("#graph-message")).to_contain_text("bad.clq")
    assert page.inner_text("#about-graph") == ""
    assert page.locator("#objective").count() == 0
    assert page.is_disabled("#solve")
    page.click("#draw")
    playwright.expect(page.locator("#about-graph")).to_contain_text("nodes")
    assert page.is_enabled("#solve")


def test_on_a_phone_the_file_comes_first(page):
    page.set_viewport_size({"width": 390, "height": 844})
    tops = [
        page.locator(place).bounding_box()["y"] for place in (".drop", "#generator", ".card.problem", ".stage", ".run")
    ]
    assert tops == sorted(tops)
