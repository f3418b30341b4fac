"""`coset language-server`, asked by an editor over stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from coset.rules.format import format_text
from coset.rules.library import check_files
from tests.coset.editor_client import MOST, ROOT, Editor

pytest.importorskip("pygls", reason="pip install -e '.[editor]'")

USE = "use stablehlo as hlo, onnx\n\n"
TWICE = 'rule twice\n  "A sum."\n  for x: F[S..]\n  x + x => splat(2) * x\n  numerics reassociates\n'
THRICE = TWICE.replace("twice", "thrice").replace("splat(2)", "splat(3)")
WRONG = 'rule turned  # 𝔸é\n  "𝔸𝔹, é"\n  for x: F[M, N]\n  transpose(x, [1, 0]) => x\n  numerics exact\n'
ENDLESS = """rule endless
  for x: F[S..], y: F[S..], z: F[S..], w: F[S..]
  (x + y) * (z + w) * (x + z) * (y + w) * (x + w) => (y + w) * ((x + z) * ((x + w) * ((z + w) * (x + y))))
  numerics reassociates
"""


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    found = Editor("--time-limit", "30")
    yield found
    assert found.close() == 0, b"".join(found.errors).decode()


def uri_of(tmp_path: Path, name: str = "mine.rules") -> str:
    return (tmp_path / name).as_uri()


def place_of(text: str, part: str, *, behind: bool = False) -> tuple[int, int]:
    """The line and the column, in UTF-16 units, of a part of a text; or of what is behind it."""
    before = text[: text.index(part) + (len(part) if behind else 0)]
    line = before.count("\n")
    return line, len(before.rsplit("\n", 1)[-1].encode("utf-16-le")) // 2


def in_range(text: str, found: dict[str, Any]) -> str:
    """What stands in a range of one line."""
    start, end = found["range"]["start"], found["range"]["end"]
    assert start["line"] == end["line"]
    units = text.split("\n")[start["line"]].encode("utf-16-le")
    return units[2 * start["character"] : 2 * end["character"]].decode("utf-16-le")


def test_diagnostics_are_those_of_check_with_their_ranges(editor: Editor, tmp_path: Path) -> None:
    """Of reading, of types and of test lines, in a text that is not saved; places count UTF-16 units."""
    text = (
        USE
        + "# 𝔸 comment\n"
        + TWICE
        + "  test x = [1, 2]: f32 => [2, 5]\n\n"
        + WRONG
        + "\nrule unused for x: F[S..], y: F[S..] x + x => x numerics exact\n"
    )
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    found = editor.wrong(uri, 1, lambda found: len(found) == 3)
    file = tmp_path / "saved.rules"
    file.write_text(text)
    _, expected = check_files([file])
    said = {(in_range(text, each), each["message"].partition("\nhelp: ")[0]) for each in found}
    assert {("turned", expected[0].message), ("y", "`y` is not used")} < said
    (ground,) = (each for each in found if in_range(text, each) not in ("turned", "y"))
    assert "[2" in ground["message"] and ground["range"]["start"]["line"] == text[: text.index("test x")].count("\n")


def test_places_count_utf_16_units(editor: Editor, tmp_path: Path) -> None:
    text = USE + 'rule r\n  "𝔸𝔹é" for x: F[S..], y: F[S..] x + x => splat(2) * x numerics reassociates\n'
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    (found,) = editor.wrong(uri, 1)
    assert in_range(text, found) == "y"
    assert "y: F[S..]" in editor.at("hover", uri, *place_of(text, "y: F"))["contents"]["value"]


def test_an_editor_may_ask_for_other_units(tmp_path: Path) -> None:
    editor = Editor(capabilities={"general": {"positionEncodings": ["utf-8", "utf-16"]}})
    assert editor.told["capabilities"]["positionEncoding"] == "utf-8"
    line = 'rule r "𝔸é" for x: F[S..], y: F[S..] x + x => splat(2) * x numerics reassociates'
    editor.open(uri_of(tmp_path), USE + line)
    (found,) = editor.wrong(uri_of(tmp_path), 1)
    assert found["range"]["start"]["character"] == len(line[: line.index("y:")].encode())
    assert "workspace/inlayHint/refresh" not in editor.asked, "it did not say that it can"
    assert editor.close() == 0


def test_half_typed_text_is_a_mistake_and_nothing_ends(editor: Editor, tmp_path: Path) -> None:
    """Every beginning of a text is looked at without a failure: by completion and hover at its end, and as the last one by diagnostics."""
    uri = uri_of(tmp_path, "half.rules")
    editor.open(uri, "")
    text = USE + 'rule twice\n  "A 𝔸."\n  for x: F[S..], op f: unary, p: permutation(S)\n  f(onnx.Relu(x)) => slice(x, start: [1'
    for version, end in enumerate(range(0, len(text), 5), 2):
        editor.edit(uri, version, text[:end])
        line, column = place_of(text[:end] + "§", "§")
        assert isinstance(editor.labels(uri, line, column), list)
        for method in ("hover", "definition"):
            editor.at(method, uri, line, column)
        assert editor.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True})[
            "result"
        ] is None or (not text[:end].strip() or text[:end].startswith("use"))
    editor.edit(uri, 1000, text)
    (found,) = editor.wrong(uri, 1000)
    assert "not closed" in found["message"] and in_range(text, found) == "["
    assert not [line for line in editor.errors if b"Traceback" in line]


@pytest.mark.parametrize(
    ("before", "expected", "missing"),
    [
        ("rule r\n  for x: F[S..]\n  onnx.Re", ["onnx.Relu", "onnx.ReduceSum"], ["hlo.add"]),
        ("rule r\n  for x: F[S..]\n  hlo.", ["hlo.add", "hlo.transpose"], ["onnx.Relu"]),
        ("rule r\n  for x: F[S..]\n  onnx.Conv(x, ", ["dilations", "group", "strides", "x"], []),
        ("rule r\n  for x: F[S..]\n  onnx.Conv(x, group: 1, ", ["strides"], ["group"]),
        ("rule r\n  for value: F[S..]\n  va", ["value", "splat", "broadcast_in_dim"], []),
        ("rule r\n  for x: ", ["F", "const", "permutation", "f32"], ["onnx.Relu"]),
        ("rule r\n  for op f: ", ["unary", "commutative"], ["f32"]),
        ("rule r\n  for x: F[S..]\n  x + x => x\n  numerics ", ["exact", "lossy"], ["x"]),
        ("rule r\n  for x: F[S..]\n  x + x => x\n  numerics reassociates except nonfinite, ", ["masked"], ["x"]),
        ("use ", ["chlo", "onnx", "stablehlo"], ["rule"]),
        ("", ["kernel", "op", "phase", "rule", "use"], ["onnx.Relu"]),
        ("rule here for x: F[S..] x + x => x numerics exact\nphase fuse { ", ["here", "add_zero"], ["x"]),
        ("rule r\n  # onnx.", [], ["onnx.Relu"]),
    ],
)
def test_completion_offers_what_may_stand_there(
    editor: Editor, tmp_path: Path, before: str, expected: list[str], missing: list[str]
) -> None:
    library, _ = check_names()
    expected = [library if each == "add_zero" else each for each in expected]
    text = f"{USE}{before}"
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    found = editor.labels(uri, *place_of(text + "§", "§"))
    assert [each for each in expected if each not in found] == []
    assert [each for each in missing if each in found] == []
    assert found or not expected


def check_names() -> tuple[str, str]:
    """The first rule of the library's lock file, and what it is shown to be."""
    rules = json.loads((ROOT / "rules" / "library" / "rules.lock").read_text())["rules"]
    name = next(iter(rules))
    return name, rules[name]["assurance"]


def test_hover_says_the_type_and_the_meaning(editor: Editor, tmp_path: Path) -> None:
    text = USE.replace("onnx", "onnx, mine") + TWICE.replace("splat(2)", "onnx.Gelu(x) - splat(s)").replace(
        "  numerics", "  with s = rank(x)\n  numerics"
    )
    text += 'op mine.half(x: F[S..]) -> F[S..] "Half of it." means x / 2 numerics exact\n'
    text += "rule h for x: F[S..] mine.half(x) => x numerics exact\n"
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    editor.wrong(uri, 1, lambda found: True)

    def hover(part: str) -> str:
        said: str = editor.at("hover", uri, *place_of(text, part))["contents"]["value"]
        return said

    assert "x: F[S..]" in hover("x + x")
    assert "s = rank(x)" in hover("s)")
    gelu = hover("onnx.Gelu")
    assert "means" in gelu and "approximate" in gelu and "operand" in gelu
    assert "the number of dims" in hover("rank(x)")
    assert "rounding" in hover("reassociates")
    assert "every element" in hover("splat")
    editor.eventually(lambda: "Half of it." in str(editor.at("hover", uri, *place_of(text, "mine.half(x) => "))))
    assert editor.at("hover", uri, *place_of(text, "=>")) is None


def test_definition_leads_to_declarations_and_to_files(editor: Editor, tmp_path: Path) -> None:
    library, _ = check_names()
    text = USE + TWICE.replace("splat(2)", "hlo.abs(onnx.Gelu(x))") + f"phase algebra {{ twice, {library} }}\n"
    uri = uri_of(tmp_path)
    editor.open(uri, text)

    def goes(part: str) -> tuple[str, str]:
        found = editor.at("definition", uri, *place_of(text, part))
        path = Path(found["uri"].removeprefix("file://"))
        lines = (text if found["uri"] == uri else path.read_text()).splitlines()
        return path.name, lines[found["range"]["start"]["line"]]

    assert goes("x + x") == ("mine.rules", "  for x: F[S..]")
    assert goes("twice, ") == ("mine.rules", "rule twice")
    name, line = goes("onnx.Gelu")
    assert name.endswith(".rules") and "Gelu" in line
    name, line = goes("hlo.abs")
    assert name.endswith(".py")
    name, line = goes(library)
    assert name.endswith(".rules") and f"rule {library}" in line


def test_formatting_is_that_of_fmt(editor: Editor, tmp_path: Path) -> None:
    text = USE + TWICE.replace("  x + x", "      x+x").replace('"A sum."', '"𝔸."')
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    (edit,) = editor.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True})["result"]
    assert edit["newText"] == format_text(text) != text
    assert edit["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": text.count("\n"), "character": 0}}
    editor.edit(uri, 2, edit["newText"])
    assert editor.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True})["result"] is None


def actions(editor: Editor, uri: str, line: int) -> list[dict[str, Any]]:
    place = {"line": line, "character": 3}
    params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    found: list[dict[str, Any]] = editor.ask("textDocument/codeAction", **params)["result"]
    return found


def test_a_code_action_proves_the_rule_and_shows_the_verdict_in_the_text(editor: Editor, tmp_path: Path) -> None:
    text = USE + TWICE + "\n" + THRICE
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    (action,) = actions(editor, uri, place_of(text, "x + x")[0])
    assert action["title"] == "Prove `twice`"
    asked = len(editor.asked)
    verdict = editor.ask("workspace/executeCommand", **{k: v for k, v in action["command"].items() if k != "title"})["result"]
    assert verdict["assurance"] == "proved"
    (hint,) = editor.hints(uri)
    assert hint["label"].startswith("proved") and hint["position"] == dict(
        zip(("line", "character"), place_of(text, "twice", behind=True), strict=True)
    )
    assert "workspace/inlayHint/refresh" in editor.asked[asked:]
    refuted = editor.ask("workspace/executeCommand", command=action["command"]["command"], arguments=[uri, "thrice"])["result"]
    assert refuted["assurance"] == "refuted"
    (wrong,) = editor.wrong(uri, 1)
    assert in_range(text, wrong) == "thrice" and "left at [0]" in wrong["message"]
    assert [hint["label"].partition(":")[0] for hint in editor.hints(uri)] == ["proved", "refuted"]
    moved = text.replace("rule twice", "# here\nrule twice").replace("splat(3)", "splat(2)")
    editor.edit(uri, 2, moved)
    editor.wrong(uri, 2, lambda found: not found)
    (hint,) = editor.hints(uri)
    assert hint["position"]["line"] == place_of(moved, "twice")[0]


def test_an_edit_ends_a_proof_and_nothing_waits_for_one(editor: Editor, tmp_path: Path) -> None:
    text = USE + ENDLESS
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    editor.wrong(uri, 1, lambda found: True)
    before = children(editor)
    asked = editor.begin("workspace/executeCommand", command="coset.proveRule", arguments=[uri, "endless"])
    editor.eventually(lambda: any(hint["label"].startswith("proving") for hint in editor.hints(uri)))
    assert editor.labels(uri, *place_of(text, "numerics")), "other requests are answered meanwhile"
    editor.edit(uri, 2, text.replace("endless", "other"))
    assert editor.answer(asked)["result"]["assurance"] == "cancelled"
    editor.wrong(uri, 2, lambda found: True)
    assert editor.hints(uri) == []
    end = monotonic() + MOST
    while children(editor) - before and monotonic() < end:
        sleep(0.05)
    assert not children(editor) - before


def children(editor: Editor) -> set[int]:
    """The processes that descend from a server's."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(status.parent.name)] = int(fields[1])
    found, new = set[int](), {editor.process.pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def test_verdicts_of_a_lock_file_stand_in_the_text_as_long_as_it_is_the_same(editor: Editor) -> None:
    path = ROOT / "rules" / "library" / "identity.rules"
    text = path.read_text()
    lock = json.loads((path.parent / "rules.lock").read_text())["rules"]
    editor.open(path.as_uri(), text)
    editor.eventually(lambda: bool(editor.hints(path.as_uri())))
    names = [line.split()[1] for line in text.splitlines() if line.startswith("rule ")]
    assert [hint["label"].partition(":")[0] for hint in editor.hints(path.as_uri())] == [lock[name]["assurance"] for name in names]
    editor.wrong(path.as_uri(), 1, lambda found: not found)
    changed = text.replace("numerics exact", "numerics lossy", 1)
    editor.edit(path.as_uri(), 2, changed)
    editor.wrong(path.as_uri(), 2, lambda found: True)
    assert len(editor.hints(path.as_uri())) == len(names) - 1


def test_ops_of_a_file_beside_it_and_of_a_dialect_that_is_edited_are_known(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "ops.rules").write_text(USE + "op acme.half(x: F[S..]) -> F[S..]\n  means x / 2\n  numerics exact\n")
    text = USE.replace("onnx", "acme") + "rule r for x: F[S..]\n  acme.half(x) + acme.half(x) => x\n  numerics reassociates\n"
    uri = uri_of(tmp_path)
    editor.open(uri, text)
    editor.edit(uri, 2, text.replace("x: F[S..]", "x: F[S..], y: F[S..]"))
    (found,) = editor.wrong(uri, 2)
    assert in_range(text.replace("x: F[S..]", "x: F[S..], y: F[S..]"), found) == "y"
    path = ROOT / "dialects" / "onnx" / "reductions.rules"
    text = path.read_text()
    changed = text.replace("means sum(x * x, dimensions)\n  numerics", "means sum(x * y, dimensions)\n  numerics")
    assert changed != text
    editor.open(path.as_uri(), changed)
    (found,) = editor.wrong(path.as_uri(), 1)
    assert in_range(changed, found) == "y"


def test_a_server_whose_editor_is_gone_ends() -> None:
    """With all that it started, and whatever these do."""
    editor = Editor()
    uri = "untitled:mine"
    editor.open(uri, USE + ENDLESS)
    editor.wrong(uri, 1, lambda found: True)
    editor.begin("workspace/executeCommand", command="coset.proveRule", arguments=[uri, "endless"])
    editor.eventually(lambda: any(hint["label"].startswith("proving") for hint in editor.hints(uri)))
    started = children(editor)
    assert started and editor.process.stdin is not None
    editor.process.stdin.close()
    editor.process.wait(MOST)
    end = monotonic() + MOST
    while monotonic() < end and any(running(each) for each in started):
        sleep(0.05)
    assert not [each for each in started if running(each)]


def running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_pygls_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ImportError('no pygls')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "coset.cli", "language-server"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr.splitlines()[0] == "error: the language server needs pygls, which is not installed"
    assert "pip install 'pygls" in ended.stderr
