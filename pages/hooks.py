"""Events of mkdocs: add the pages that are not in docs/, and the files that pages link to; write links and blocks as mkdocs reads them.

On the site README.md is the first page, and ARCHITECTURE.md, CHANGELOG.md and CONTRIBUTING.md lie beside the others. A file outside of
docs/ that a page links to (a result of a measurement) is copied under its path in the repository.
"""

from __future__ import annotations

import os.path
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pages.reference import api_page, cli_page, library_pages  # noqa: E402 the repository's root is found first

MOVED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=(?:#[^)\s]*)?\))")
FENCE = re.compile(r"^```(\w+)(?: ([\w.-]+))?$", re.M)
ENTRY = re.compile(r"^```\n(?=(?:use|rule|op|kernel|phase) )", re.M)
LANGUAGES = {"rules": "coset", "prints": "text"}


def on_files(files: Files, config: Any) -> Files:
    """Add what is generated, what lies at the root of the repository, and files that pages link to."""
    texts = {path: (ROOT / source).read_text() for source, path in MOVED.items()}
    for path, text in {**texts, "cli.md": cli_page(), "api.md": api_page(), **library_pages()}.items():
        files.append(File.generated(config, path, content=text))
    for target in sorted(_linked()):
        files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
    return files


def _linked() -> set[str]:
    """Files outside of docs/ that pages link to, by their paths in the repository; a page among them links to others."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / each for each in MOVED)]
    linked: set[str] = set()
    while pages:
        page = pages.pop()
        links = {_inside(page.relative_to(ROOT).parent, link) for link in LINK.findall(page.read_text())}
        files = {link for link in links if link not in MOVED and not link.startswith("docs/") and (ROOT / link).is_file()}
        pages += [ROOT / file for file in files - linked if file.endswith(".md")]
        linked |= files
    return linked


def _inside(folder: Path, link: str) -> str:
    """The path in the repository of what a page in `folder` links to."""
    return os.path.normpath(PurePosixPath(folder.as_posix(), link))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to where their targets are on the site; say the language of each block and the name of its file as mkdocs reads them."""
    path = page.file.src_uri
    copied = page.file.abs_src_path and Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    source = next((root for root, moved in MOVED.items() if moved == path), copied or f"docs/{path}")

    def led(found: re.Match[str]) -> str:
        target = _inside(Path(source).parent, found[1])
        place = MOVED.get(target, target.removeprefix("docs/"))
        return os.path.relpath(place, Path(path).parent.as_posix())

    return FENCE.sub(_fenced, ENTRY.sub("```coset\n", LINK.sub(led, markdown)))


def _fenced(found: re.Match[str]) -> str:
    """The first line of a block: ```toml a.toml has a title, ```sh fails none."""
    language = LANGUAGES.get(found[1], found[1])
    return f'```{language} title="{found[2]}"' if found[2] and "." in found[2] else f"```{language}"
