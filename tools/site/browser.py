"""Tries the built site: python -m tools.site.browser [FOLDER], by default build/site.

Every link and picture of every page leads somewhere, and no page of the reference is above 200 kB.
In Chromium (Debian: `apt-get install chromium`) pages are opened from files, without a server: the
console has no error, the search finds what it should, nothing is wider than a narrow screen.
Screenshots are put into FOLDER/screenshots, wide, narrow and dark, to be looked at.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

LARGEST = 200_000
SHOWN = ["index", "first_steps", "tour", "gallery", "gradients", "compile", "benchmarks",
         "reference/index", "reference/tensorlib.tanh", "reference/tensorlib.nn.Conv2d"]
SOUGHT = {"cross_entropy": "tensorlib.nn.functional.cross_entropy",
          "LSTM": "tensorlib.nn.LSTM", "vmap": "tensorlib.func.vmap"}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=8000"]
DARK = "--blink-settings=preferredColorScheme=0"
NARROW = 500        # as narrow as a window of Chromium's gets
REFERENCE = re.compile(r"""<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"]*)\"""")
IDENTIFIER = re.compile(r"""\sid="([^"]*)\"""")
# Put into a copy of a page, it writes what is too wide into the title.
WIDTHS = """<script>addEventListener("load", () => setTimeout(() => {
document.title = "wide:" + (document.documentElement.scrollWidth - innerWidth) + " broken:" +
    [...document.images].filter(i => i.complete && !i.naturalWidth).length; }, 300));</script>"""


def dead_links(html):
    """What links of pages do not lead to, as texts."""
    pages = {path: path.read_text() for path in html.rglob("*.html")}
    identifiers = {path: set(IDENTIFIER.findall(text)) for path, text in pages.items()}
    for path, text in pages.items():
        for link in set(REFERENCE.findall(text)):
            if re.match(r"https?:|mailto:|data:|#?$", link):
                continue
            target, _, fragment = unescape(link).partition("#")
            file = path if not target else (path.parent / unquote(target.partition("?")[0]))
            file = file.resolve()
            if not file.exists():
                yield f"{path.relative_to(html)}: no {link}"
            elif fragment and file in identifiers and unquote(fragment) not in identifiers[file]:
                yield f"{path.relative_to(html)}: no place {link}"


def too_large(html):
    for path in (html / "reference").glob("*.html"):
        if path.stat().st_size > LARGEST:
            yield f"{path.name}: {path.stat().st_size:,} bytes"


def opened(url, *options):
    """What Chromium prints of a page, and the errors of its console."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("tools.site.browser: no chromium is installed")
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([chromium, *FLAGS, f"--user-data-dir={profile}", *options, url],
                              capture_output=True, text=True, timeout=180)
    return done.stdout, re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr)


def complaints(html, screenshots):
    """Everything that is wrong, as texts."""
    yield from dead_links(html)
    yield from too_large(html)
    for page in SHOWN:
        url, name = (html / f"{page}.html").as_uri(), page.replace("/", "-")
        for kind, options in (("wide", ["--window-size=1280,1400"]),
                              ("narrow", [f"--window-size={NARROW},1400"]),
                              ("dark", ["--window-size=1280,1400", DARK])):
            _, errors = opened(url, *options, f"--screenshot={screenshots / name}-{kind}.png")
            yield from (f"{page}, {kind}: {error}" for error in errors)
        yield from measured(html, page)
    for word, name in SOUGHT.items():
        found, errors = opened((html / "search.html").as_uri() + f"?q={quote(word)}", "--dump-dom")
        yield from (f"search for {word}: {error}" for error in errors)
        if f"{name}.html" not in found:
            yield f"search for {word}: does not find {name}"


def measured(html, page):
    """What of a page is wider than a narrow screen, and pictures that are not shown."""
    path = html / f"{page}.html"
    copy = path.with_name("measured.html")
    copy.write_text(path.read_text().replace("</body>", WIDTHS + "</body>"))
    try:
        found, _ = opened(copy.as_uri(), f"--window-size={NARROW},1400", "--dump-dom")
    finally:
        copy.unlink()
    match = re.search(r"<title>wide:(-?\d+) broken:(\d+)", found)
    if match is None or int(match[1]) > 0 or int(match[2]):
        yield f"{page}: {match[0] if match else 'was not measured'}"


def main(folder):
    """Runs the command; returns its exit status."""
    screenshots = folder / "screenshots"
    screenshots.mkdir(exist_ok=True)
    found = list(complaints((folder / "html").resolve(), screenshots))
    print(*found, f"{len(found)} complaints; screenshots are in {screenshots}", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else
                       Path(__file__).parents[2] / "build" / "site").resolve()))
