"""Pages of reference speak of every public name, command and option."""

from __future__ import annotations

import click
import pytest

import coset
from coset.cli import cli
from pages.reference import api_page, cli_page, library_pages

COMMANDS = sorted(cli.commands)


@pytest.mark.parametrize("name", coset.__all__)
def test_a_public_name_has_a_section_with_its_docstring(name: str) -> None:
    section = api_page().split(f"\n## coset.{name}\n")[1].split("\n## ")[0]
    assert section.count("```") == 2 * (1 + section.count("\n### "))
    assert len(section.split("```")[2].strip()) > 20 and "0x" not in section and "_draft" not in section


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_with_all_its_options(name: str) -> None:
    section = cli_page().split(f"\n## coset {name}\n")[1].split("\n## ")[0]
    options = [option for option in cli.commands[name].params if isinstance(option, click.Option)]
    assert not [option.name for option in options if f"`{option.opts[0]}`" not in section]


def test_errors_are_listed_one_by_one() -> None:
    section = api_page().split("\n## coset.load\n")[1].split("\n## ")[0]
    assert "\n- `CosetError`: the file cannot be read or loaded.\n" in section


def test_every_theme_of_the_library_is_a_page_that_the_index_links() -> None:
    pages = library_pages()
    index = pages.pop("rules/index.md")
    assert len(pages) > 20
    assert not [path for path in pages if f"({path.removeprefix('rules/')})" not in index]
