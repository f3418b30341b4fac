"""docs/target-file.md: every key of a target's file, from where the keys are declared."""

from __future__ import annotations

from coset.ir.types import DTYPES
from coset.targets.document import names_of_numbers, other_names, own_document, target_files
from coset.targets.keys import BASE, ENTRIES, KEY_SETS, LEGAL_KEY, TOP, WHOLES, FileKey, KeySet
from coset.targets.running import LEVELS

HEAD = """\
# Keys of a target's file

*Written by `coset targets --docs docs`; the keys are declared in `targets/keys.py`.*

A target's file is TOML ([how to add one](adding-a-target.md)). Any other key is refused, with the nearest one as the remedy. *Must*
marks a key without which its table is refused.
"""


def target_file_page() -> str:
    """The page, in Markdown."""
    sections = [_top(), *(_section(keys) for keys in KEY_SETS if keys is not TOP), _words(), _numbers()]
    return HEAD + "".join(f"\n{section}" for section in sections)


def _top() -> str:
    """What stands at the top, by how it is laid over the base."""
    groups = (
        ("", (BASE,)),
        ("These take the place of what the base says as a whole:", WHOLES),
        ("These are tables whose entries have names. An entry takes the place of the one that has this name in the base:", ENTRIES),
        ("What this table says of an op takes the place of all that the base says of it:", (LEGAL_KEY,)),
    )
    assert sorted(key.name for _, keys in groups for key in keys) == sorted(TOP.names)
    return f"## {TOP.title}\n\n{TOP.says}\n" + "".join((f"\n{says}\n\n" if says else "\n") + _table(keys) for says, keys in groups)


def _section(keys: KeySet) -> str:
    others = (keys.others,) if keys.others is not None else ()
    return f"## {keys.title}\n\n{keys.says}\n\n" + _table((*keys.keys, *others), plain=others)


def _table(keys: tuple[FileKey, ...], *, plain: tuple[FileKey, ...] = ()) -> str:
    """A row for each key; the name of a `plain` one is a word for many keys."""
    rows = [
        f"| {key.name if key in plain else f'`{key.name}`'} | {key.value} | {'must' if key.required else ''} | {key.says} |\n"
        for key in keys
    ]
    return "| key | value | | meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _words() -> str:
    return f"""\
## Words

- Element types: {", ".join(f"`{name}`" for name in DTYPES)}.
- Levels of `sessions.levels`: {", ".join(f"`{name}`" for name in LEVELS)}.
- Words of `conditions`: [the list](targets.md#conditions).
- Ops: `coset rules --ops` lists them, with their operands and attributes.
"""


def _numbers() -> str:
    """The numbers that targets of ours have, with their units."""
    units: dict[str, dict[str, list[str]]] = {}
    for target in target_files().keys() - other_names().keys():
        for name, entry in own_document(target).sections["numbers"].items():
            units.setdefault(name, {}).setdefault(entry.value["unit"], []).append(target)
    rows = []
    for name in names_of_numbers():
        owners = sorted(f"`{target}`" for targets in units[name].values() for target in targets)
        rows.append(f"| `{name}` | {' or '.join(sorted(units[name]))} | {', '.join(owners)} |\n")
    return (
        "## Entries of `[numbers]`\n\nThose of coset's own targets. coset reads no number of another name, except where `of` names it.\n\n"
        "| number | unit | of |\n| --- | --- | --- |\n" + "".join(rows)
    )
