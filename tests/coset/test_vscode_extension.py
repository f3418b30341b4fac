"""The folder of the VS Code extension fits together, and fits the grammar and the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from coset.cli import cli
from coset.rules.highlight import textmate
from coset.rules.parser import keywords

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
ACTIVATION = (FOLDER / PACKAGE["main"]).read_text()
SETTINGS = PACKAGE["contributes"]["configuration"]["properties"]
STUBBED = """
const Module = require("module"), load = Module._load, said = [];
const settings = { native: ["mine"], timeLimit: 30, command: "/bin/coset" };
const vscode = {
  workspace: { getConfiguration: () => ({ get: (key) => settings[key] }), onDidChangeConfiguration: () => ({}) },
  window: { showErrorMessage: (text) => said.push(text) },
  commands: { registerCommand: (name) => said.push(name) },
};
class LanguageClient {
  constructor(id, name, server, options) { said.push({ server, options }); }
  async start() { said.push("started"); if (process.argv[2] === "missing") throw new Error("spawn ENOENT"); }
  isRunning() { return true; }
  async stop() { said.push("stopped"); }
}
const stubs = { vscode, "vscode-languageclient/node": { LanguageClient } };
Module._load = function (name, ...rest) { return stubs[name] ?? load.call(this, name, ...rest); };
const extension = require(process.argv[1]);
extension.activate({ subscriptions: [] }).then(() => extension.deactivate()).then(() => console.log(JSON.stringify(said)));
"""


def test_the_grammar_is_that_of_the_language_and_has_its_keywords() -> None:
    (contributed,) = PACKAGE["contributes"]["grammars"]
    text = (FOLDER / contributed["path"]).read_text()
    assert text == textmate(), "coset rules --textmate editors/vscode/syntaxes/rules.tmLanguage.json"
    assert json.loads(text)["scopeName"] == contributed["scopeName"]
    assert not [word for word in keywords() if not re.search(rf"\b{word}\b", text)]


def test_files_and_languages_that_are_named_are_there() -> None:
    (language,) = PACKAGE["contributes"]["languages"]
    named = [PACKAGE["main"], language["configuration"], *(each["path"] for each in PACKAGE["contributes"]["grammars"])]
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert language["extensions"] == [".rules"]
    assert {each["language"] for each in PACKAGE["contributes"]["grammars"]} == {language["id"]}
    assert f'language: "{language["id"]}"' in ACTIVATION
    configuration = json.loads((FOLDER / language["configuration"]).read_text())
    assert configuration["comments"] == {"lineComment": "#"}


def test_settings_commands_and_options_are_declared() -> None:
    assert {f"coset.{name}" for name in re.findall(r'get\("(\w+)"\)', ACTIVATION)} == set(SETTINGS)
    assert set(re.findall(r'registerCommand\("([\w.]+)"', ACTIVATION)) == {each["command"] for each in PACKAGE["contributes"]["commands"]}
    command = cli.commands["language-server"]
    options = {option for parameter in command.params for option in parameter.opts}
    given = set(re.findall(r'"(--[\w-]+)"', ACTIVATION))
    assert given and given <= options and '"language-server"' in ACTIVATION
    (limit,) = (parameter for parameter in command.params if parameter.name == "seconds")
    assert SETTINGS["coset.timeLimit"]["default"] == limit.default


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js here")
@pytest.mark.parametrize("how", ["there", "missing"])
def test_activation_starts_the_server_and_says_why_it_cannot(how: str) -> None:
    command = ["node", "-e", STUBBED, str(FOLDER / PACKAGE["main"]), how]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (client,) = (each for each in said if isinstance(each, dict))
    assert client["server"]["command"] == "/bin/coset"
    assert client["server"]["args"] == ["language-server", "--time-limit", "30", "--native", "mine"]
    assert said[-1] == "stopped" and "started" in said
    told = [each for each in said if isinstance(each, str) and "did not start" in each]
    assert len(told) == (how == "missing") and all("editor" in each for each in told)
