"""The house keeps its shape: layers import only what lies below, folders, links and packaging are one list, doors stay shut."""

from __future__ import annotations

import ast
import graphlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = {  # DESIGN section 3: what each layer may import
    "ir": set(),
    "targets": {"ir"},
    "rules": {"ir"},
    "dialects": {"ir", "rules"},
    "frontends": {"ir", "dialects"},
    "lowering": {"ir", "dialects", "targets"},
    "backends": {"ir", "targets", "lowering"},
    "prove": {"ir", "dialects", "rules"},
    "egraph": {"ir", "dialects", "rules", "prove"},
    "extract": {"ir", "dialects", "targets", "egraph"},
}
DATA = {"rules.library": "rules/library"}  # folders that hold no code
FOLDERS = {  # packages inside a layer: by job; what each imports makes no circle
    "prove": ("second",),
    "dialects": ("hub", "onnx", "composite", "ort", "aten"),
    "frontends": ("onnx", "stablehlo", "torch"),
    "lowering": ("kernels", "planning", "arranging", "torch", "triton", "package", "onnx", "stablehlo"),
}
SHARED = {"dialects": ("expansion", "sizes")}  # files that stand beside the folders of a layer
PARTS = {f"{layer}.{name}": f"{layer}/{name}" for layer, names in FOLDERS.items() for name in names}
JOBS = (  # the folders of coset/ itself, in the order of who may import whom
    "comparing", "job", "console", "pricing", "searching", "proving", "optimizing", "packaging", "tuning", "calibration", "explaining",
    "reporting", "editor", "commands",
)  # fmt: skip
ROOT_FILES = ("__init__", "api", "cli", "bench", "check", "compiling", "deferred_methods", "public", "reference", "second")  # others import
COPIED = ("lowering/package/runtime.py", "lowering/package/tiles.py")  # texts of packages
DOORS = {  # third-party package -> where it may be imported
    "egglog": ("egraph/door.py",),
    "lark": ("rules/",),
    "z3": ("prove/",),
    "scipy": ("extract/",),
    "onnx": ("frontends/onnx", "lowering/onnx", "backends/onnx"),
    "onnxruntime": ("backends/onnxruntime.py",),
    "torch": ("frontends/torch", "backends/torch", "lowering/torch/functions", *COPIED),
    "triton": ("lowering/triton", "backends/triton", *COPIED),
    "jax": ("frontends/jax", "backends/jax"),
    "torch_mlir": ("frontends/stablehlo", "frontends/mlir", "backends/stablehlo", "backends/mlir"),
    "click": ("coset/",),
    "rich": ("coset/",),
    "pygls": ("coset/editor/server.py",),
    "lsprotocol": ("coset/editor/server.py",),
    "pygments": ("rules/pygments_lexer.py",),
}
LONG_FILES = {  # more than 400 lines: at most so many, and why
    "egraph/search.py": (432, "one search over one e-graph: each step reads and changes the same state"),
    "frontends/onnx/model.py": (510, "one import of one graph: each node reads and changes what the names mean so far"),
    "frontends/onnx/runtime_forms.py": (504, "a table: what ONNX Runtime's schemas ask of each node"),
    "lowering/planning/grouping.py": (456, "one walk over a program: each step reads and changes the same groups"),
    "prove/denote.py": (569, "one recursion over terms under one set of known facts: its functions call each other"),
    "prove/frames.py": (447, "one reading of a rule's axes: its functions call each other"),
}
LONG_FUNCTIONS = {  # more than 40 lines: at most so many, and why
    "coset/optimizing/pipeline.py:optimize": (63, "the signature and the documentation of 18 parameters; 18 lines of code"),
    "lowering/torch/functions_movement.py:gather": (46, "its text is written into packages, which call it alone"),
    "prove/bounds.py:_float": (41, "trusted by the checker of certificates: one case after the other"),
    "prove/sample.py:test_rule": (56, "one loop whose counts decide together when to stop"),
    "rules/algebra.py:evaluate": (47, "trusted by the checker of certificates: one case for each form of expression"),
}


def sources() -> list[Path]:
    """Every Python file of the package, by its real folder."""
    folders = [*(ROOT / layer for layer in LAYERS), *(ROOT / "coset" / job for job in JOBS)]
    return sorted([*(ROOT / "coset").glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))])


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, module) of each import of `path`, those inside functions too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def lengths_of_functions() -> dict[str, int]:
    """The lines of the longest function of each name in each file, with its decorators left out."""
    found: dict[str, int] = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                name = f"{path.relative_to(ROOT)}:{node.name}"
                found[name] = max(found.get(name, 0), node.end_lineno - node.lineno + 1)
    return found


@pytest.mark.parametrize("kind", ["files", "functions"])
def test_files_and_functions_are_short_but_for_those_with_a_reason(kind: str) -> None:
    """A listed one is no longer than its figure, and is still too long to do without its entry."""
    files = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    found, most, listed = (files, 400, LONG_FILES) if kind == "files" else (lengths_of_functions(), 40, LONG_FUNCTIONS)
    longer = {name: lines for name, lines in found.items() if lines > listed.get(name, (most, ""))[0]}
    assert not longer, f"split these by job, or list them with a reason: {longer}"
    needless = {name for name in listed if found.get(name, 0) <= most}
    assert not needless, f"these are short, or gone: {needless}"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_stay_in_their_layer_and_behind_their_door(path: Path) -> None:
    place = path.relative_to(ROOT)
    layer = place.parts[0]
    for line, module in imports(path):
        head, *rest = module.split(".")
        if head == "coset" and layer in LAYERS:
            assert rest and rest[0] in LAYERS[layer] | {layer}, f"{place}:{line}: {layer} may not import coset.{'.'.join(rest)}"
        if head in DOORS:
            assert str(place).startswith(DOORS[head]), f"{place}:{line}: {head} is imported behind another door: {DOORS[head]}"


@pytest.mark.parametrize("layer", ["dialects", "frontends", "lowering"])
def test_the_folders_of_a_layer_make_no_circle(layer: str) -> None:
    """Files are in folders, but for those that all share, and each folder imports what stands before it in some one order."""
    shared = set(SHARED.get(layer, ()))
    needs: dict[str, set[str]] = {name: set() for name in (*FOLDERS[layer], *shared)}
    for path in sorted((ROOT / layer).rglob("*.py")):
        own = path.relative_to(ROOT / layer).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for _, module in imports(path):
            head = module.split(".")[:3]
            if head[:2] == ["coset", layer] and len(head) > 2 and head[2] != own:
                needs[own].add(head[2])
    assert list(graphlib.TopologicalSorter(needs).static_order()), needs  # raises CycleError with the circle
    assert set(needs).union(*needs.values()) == set(FOLDERS[layer]) | shared


def test_the_folders_of_the_application_import_those_before_them() -> None:
    """The files at its root are what others run or import: of the folders only `commands` knows them."""
    assert {path.stem for path in (ROOT / "coset").glob("*.py")} == set(ROOT_FILES)
    for path in sources():
        place = path.relative_to(ROOT / "coset") if path.is_relative_to(ROOT / "coset") else Path()
        if place.parts and place.parts[0] in JOBS:
            allowed = JOBS[: JOBS.index(place.parts[0]) + 1]
            for line, module in imports(path):
                head, *rest = module.split(".")
                if head == "coset" and rest and rest[0] in JOBS:
                    assert rest[0] in allowed, f"{path}:{line}: {module}"
                if head == "coset" and rest and rest[0] in ROOT_FILES:
                    assert place.parts[0] == "commands", f"{path}:{line}: {module}"


def test_folders_links_and_packaging_are_one_list() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    mapped = {name.removeprefix("coset."): folder for name, folder in tool["setuptools"]["package-dir"].items() if name != "coset"}
    links = {link.name: str(link.readlink()) for link in (ROOT / "coset").iterdir() if link.is_symlink()}
    assert mapped == {**{layer: layer for layer in LAYERS}, **DATA, **PARTS}
    assert links == {layer: f"../{layer}" for layer in LAYERS}
    assert set(tool["setuptools"]["packages"]) == {"coset", *(f"coset.{part}" for part in (*JOBS, *LAYERS, *DATA, *PARTS))}
    assert {path.parent.name for path in (ROOT / "coset").glob("*/__init__.py") if not path.parent.is_symlink()} == set(JOBS)
    assert all((ROOT / folder / "__init__.py").exists() for folder in (*LAYERS, *PARTS.values()))


def test_a_name_stands_for_one_class() -> None:
    """But in the second checker, which shares no code with the first and has its words for the same things."""
    found: dict[str, list[str]] = {}
    for path in sources():
        place = str(path.relative_to(ROOT))
        if not place.startswith("prove/second/") and place not in COPIED:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(place)
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_nothing_unpickles_or_executes_data() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    for path in sources():
        assert not {module.split(".")[0] for _, module in imports(path)} & forbidden, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, f"{path}:{node.lineno}"


def test_who_sends_to_other_processes_says_how_types_are_sent() -> None:
    """A dtype that was copied on the way is another one: all comparisons of it with `is` would be false."""
    sending = {path for path in sources() if any(module.split(".")[0] == "multiprocessing" for _, module in imports(path))}
    assert sending and all("coset.ir.sent" in {module for _, module in imports(path)} for path in sending)
    assert not any("ProcessPoolExecutor" in path.read_text() for path in sources())
