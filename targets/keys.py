"""The keys of a target's file: which there are, what is written behind each, and what it means. Readers refuse any other key, and
docs/target-file.md lists these."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.types import DTYPES
from coset.targets.target import EVERY


@dataclass(frozen=True)
class FileKey:
    """A key. `value`: what is written behind it; `says`: what that means; `required`: a table without it is refused."""

    name: str
    value: str
    says: str
    required: bool = False


@dataclass(frozen=True)
class KeySet:
    """The keys of one kind of table. `title` says which tables these are, `says` what such a table means. `others` is what any name of
    `names_of_others` stands for."""

    title: str
    says: str
    keys: tuple[FileKey, ...]
    others: FileKey | None = None
    names_of_others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every key that may stand there."""
        return (*(key.name for key in self.keys), *self.names_of_others)

    @property
    def required(self) -> tuple[str, ...]:
        """Every key that must stand there."""
        return tuple(key.name for key in self.keys if key.required)


SOURCE = FileKey("source", "text", "where the number is from: a sentence, or the name of an entry of `[sources]`", required=True)
NOTE = FileKey("note", "text", "what is added to the source")
TIMES = FileKey("times", "number", "what each number is multiplied by", required=True)

# ---------------------------------------------------------------- the top

BASE = FileKey(
    "base", "text", "the file that this one is laid over: a target or base of coset, or the path of a `.toml` file from this folder"
)
WHOLES = (
    FileKey("title", "text", "the machine and its runtime in a few words; must be there, here or in the base"),
    FileKey("dialect", "text", "what coset writes: `onnx`, `stablehlo`, `torch`, `tosa` or `*` (any); must be there, here or in the base"),
    FileKey("notes", "text", "what a reader should know of the numbers"),
    FileKey("host", "text", "the target that computes what this one has no form for; `[kernels]` then needs `transfer`"),
    FileKey("strict", "true or false", "the `dtypes` of forms also hold for ops of the user's own model; by default false"),
    FileKey("standard", "true or false", "only ops of ONNX's own domain are written, in the model's own version; by default false"),
    FileKey("folds_constants", "true or false", "the runtime itself computes what depends on constants only; by default false"),
    FileKey("storing", "table", "which constants are computed at build time and stored"),
    FileKey("merges", "number in rows", "products of one operand with several matrices are tried as one up to so many rows"),
    FileKey("fusion", "table", "which kernels price a kernel that several ops share; without it each op is a kernel"),
    FileKey("sessions", "table", "how the runtime is told to run a program"),
)  # fmt: skip
"""What takes the place of the base's as a whole."""
ENTRIES = (
    FileKey("sources", "table of texts", "where numbers are from, each under a name that `source` may say"),
    FileKey("dtypes", "table of texts", "sets of element types: names of types and sets, `-` in front of what is taken away"),
    FileKey("casts", "table of texts", "element types that the runtime computes in another one; `[kernels]` then needs `convert`"),
    FileKey("numbers", "table of numbers", 'facts of the machine, as sizes of caches; `"unknown"` takes back a number of the base'),
    FileKey("launches", "table of numbers in s", "times by name, for `launch` and `piece` of kernels"),
    FileKey("rates", "table of rates", "how fast kernels compute, by name"),
    FileKey("curves", "table of curves", "numbers that depend on a size, by name"),
    FileKey("kernels", "table of kernels", "what one node takes, by family; `host` must be there"),
)  # fmt: skip
"""Tables whose entries have names: an entry takes the place of the one that has this name in the base."""
LEGAL_KEY = FileKey("legal", "table", "which ops the machine runs, and as which kernels")
TOP = KeySet(
    "At the top", "What stands before the first table.", (BASE, *WHOLES, *ENTRIES, LEGAL_KEY),
)  # fmt: skip
SECTIONS = tuple(key.name for key in ENTRIES)
WHOLE = tuple(key.name for key in WHOLES)

# ---------------------------------------------------------------- numbers

NUMBER = KeySet(
    "A number", "Stands wherever a number in a unit is asked for: an entry of `[numbers]` or `[launches]`, `merges`, `alone` and so on.",
    (
        FileKey("value", "number", "above 0; `launch`, `piece` and `small` may be 0", required=True),
        FileKey("unit", "text", "the unit that is asked for there; in `[numbers]` mostly any", required=True),
        SOURCE, NOTE,
    ),
)  # fmt: skip
RATES = KeySet(
    "An entry of `[rates]`", "How fast a kernel computes, by element type.",
    (
        FileKey("unit", "text", "`FLOP/s`; or `element/s`, of the largest tensor", required=True),
        SOURCE, NOTE,
        FileKey(EVERY, "number", "the rate of all element types without one of their own; write the key in quotes", required=True),
    ),
    FileKey("an element type", "number", "the rate of this one"), tuple(DTYPES),
)  # fmt: skip
RATES_LIKE = KeySet(
    "An entry of `[rates]` that is a share of another", "One rate for all element types.",
    (
        FileKey("like", "text", "the entry that it is a share of; `file:name` for one of another target", required=True),
        FileKey("dtype", "text", "the element type whose rate there is meant", required=True),
        TIMES, SOURCE, NOTE,
    ),
)  # fmt: skip
CURVE = KeySet(
    "An entry of `[curves]`", "A number over a size: straight between its points in logarithms, flat outside.",
    (
        FileKey("x", "text", "the unit of the size: `B` for `bandwidth`, `rows` for `rows`, `FLOP` for `work`", required=True),
        FileKey("unit", "text", "`B/s` for `bandwidth`, else `share` (at most 1)", required=True),
        SOURCE, NOTE,
        FileKey("points", "list of [x, y]", "by rising x, all above 0", required=True),
        FileKey("of", "text", "the entry of `[numbers]` that each y is a share of"),
        FileKey("times", "number", "what each y is multiplied by"),
    ),
)  # fmt: skip
CURVE_LIKE = KeySet(
    "An entry of `[curves]` that is a multiple of another", "The same points, each y multiplied.",
    (FileKey("like", "text", "the other entry; `file:name` for one of another target", required=True), TIMES, SOURCE, NOTE),
)  # fmt: skip
TILES = KeySet(
    "`tiles` of a kernel", "A product takes as long as one whose sizes are multiples of these.",
    (
        FileKey("rows", "whole number", "rows of a tile", required=True),
        FileKey("columns", "whole number", "columns of a tile", required=True),
        FileKey("depth", "whole number", "length of the sums", required=True),
        SOURCE, NOTE,
    ),
)  # fmt: skip
PARTS = (
    FileKey("launch", "number in s, or name in `[launches]`", "what each node takes besides", required=True),
    FileKey("piece", "number in s, or name in `[launches]`", "what each product of a batch, operand of a concatenation or slice takes"),
    FileKey("rates", "rates, or name in `[rates]`", "how fast it computes; without them its bytes alone count"),
    FileKey("bandwidth", "curve, or name in `[curves]`", "B/s over the bytes that one node reads and writes; without it nothing moves"),
    FileKey("rows", "curve, or name in `[curves]`", "the share of the rate that a product of few rows reaches"),
    FileKey("work", "curve, or name in `[curves]`", "the share of the rate that little work reaches; the lower of both shares counts"),
)  # fmt: skip
KERNEL = KeySet(
    "An entry of `[kernels]`",
    "The seconds of a node: the launch, and the larger of work / rate and bytes / bandwidth. "
    'A text such as `"cpu-onnxruntime:matmul"` is the kernel of another target.',
    (*PARTS, FileKey("tiles", "table", "the tiles of a matrix unit; without them nothing is padded")),
)  # fmt: skip

# ---------------------------------------------------------------- legality

LEGAL = KeySet(
    "`[legal]`", "What a file says of an op takes the place of all that its base says of it.",
    (
        FileKey("default", "name of a kernel", "of ops of the target's dialect that have no form; must be there, here or in the base"),
        FileKey("never", "names of ops", "ops that are not run; spaces between the names, and one without a dialect is StableHLO's"),
        FileKey("forms", "list of forms", "how ops are run; of one op the first form that fits"),
    ),
)  # fmt: skip
FORM = KeySet(
    "An item of `legal.forms`", "One way to run some ops.",
    (
        FileKey("ops", "names of ops", "with spaces between them; one without a dialect is StableHLO's", required=True),
        FileKey("kernel", "name of a kernel", "what each node takes", required=True),
        FileKey("dtypes", "names of types and sets", "the element types that it takes, `-` in front of what is taken away; without it all"),
        FileKey("conditions", "words", "what else must hold, as [targets.md](targets.md#conditions) lists it"),
        FileKey("typed", "whole number", "the operand that `dtypes` speaks of; by default 0"),
        FileKey("nodes", "whole number", "how many nodes are written for one op; by default 1"),
        FileKey("views", "list of whole numbers", "operands that the kernel broadcasts itself"),
        FileKey("kept", "whole number", "how many last dims of such an operand must be there in full; by default 0"),
        FileKey("reorder", "name of a kernel", "what puts operands and result in order around this one"),
        FileKey("passes", "list of [kernel, operand]", "kernels that go once more over an operand, or over the result (-1)"),
        FileKey("joint", "true or false", "slices that are together all of one value are one node; by default false"),
        FileKey("whole", "true or false", "rules do not look into the op: its nodes are what the runtime fuses; by default false"),
        FileKey("guesses", "name of a kernel", "what a mask (operand 0) takes besides, if all operands are computed"),
    ),
)  # fmt: skip

# ---------------------------------------------------------------- constants, fusion and sessions

STORING = KeySet(
    "`[storing]`", "A value of constants alone is computed at build time if either bound admits it.",
    (
        FileKey("growth", "number in `times`", "how many times the bytes that it is made of it may take", required=True),
        FileKey("small", "number in `B`", "how many bytes it may take whatever it is made of", required=True),
        FileKey("kept", "list of texts", "names of ONNX ops whose value is never stored"),
    ),
)  # fmt: skip
FUSED = (
    FileKey("pointwise", "name of a kernel", "of ops elementwise and of movement", required=True),
    FileKey("rows", "name of a kernel", "of ops along rows, as reductions", required=True),
    FileKey("product", "name of a kernel", "of products", required=True),
)  # fmt: skip
PRODUCTS = (
    FileKey("full", "name of a kernel", "of products of f32 in full; without it as `product`"),
    FileKey("library", "name of a kernel", "of such products by a library; without it no library does them"),
    FileKey("halves", "name of a kernel", "of products of 16-bit floats by a library; without it no library does them"),
    FileKey("bf16x6", "name of a kernel", "of attention in f32 whose products are six of bf16; without it they are of f32"),
    FileKey("attention", "name of a kernel", "of attention of 16-bit floats by a library; without it no library does it"),
)  # fmt: skip
FUSION = KeySet("`fusion`", "The kernels whose numbers price a kernel that several ops share.", (*FUSED, *PRODUCTS))
SESSIONS = KeySet(
    "`[sessions]`", "For a runtime that has levels of optimization.",
    (
        FileKey("levels", "list of texts", "levels of ONNX Runtime, from the fastest to `off`, which changes nothing", required=True),
        FileKey("alone", "number in s", "predicted seconds below which a second thread does not pay", required=True),
        FileKey("disabled", "table of texts", "optimizers of the runtime that lose, each with the measurement"),
        FileKey("stacked", "list of texts", "those of `disabled` that lose only beside products of a matrix with a stack of them"),
    ),
)  # fmt: skip
KEY_SETS = (TOP, NUMBER, RATES, RATES_LIKE, CURVE, CURVE_LIKE, KERNEL, TILES, LEGAL, FORM, STORING, FUSION, SESSIONS)
"""All of them, in the order of the page."""
