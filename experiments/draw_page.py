"""The picture of the page of `diffuco serve`: eight samples of a cut while their energies fall.

diffuco serve --port 8000 &
python experiments/draw_page.py http://127.0.0.1:8000 docs/images/serve.png
"""

import shutil
import sys

from playwright.sync_api import sync_playwright

STEP = 5
"""The reverse step that is shown."""


def main() -> None:
    """Drive a browser to the page, solve, go back to the step, and take the picture."""
    address, path = sys.argv[1:]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 930}, color_scheme="dark")
        page.goto(address)
        page.wait_for_selector("html[data-layout]")
        page.locator("#problems label", has_text="Cut").click()
        page.select_option("#generator", "ba")
        for name, value in {"first": 150, "second": 2, "graph-seed": 7}.items():
            page.fill(f"#{name}", str(value))
        page.click("#draw")
        page.wait_for_selector("#about-graph:has-text('150 nodes')")
        page.select_option("#speed", "fast")
        page.click("#solve")
        page.wait_for_selector("html[data-answer]", timeout=60_000)
        page.fill("#scrub", str(STEP))
        page.select_option("#speed", "normal")
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
