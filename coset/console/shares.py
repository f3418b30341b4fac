"""How much of the rules is shown, and how well: by family, and weighed by what the models use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coset.prove.verdict import RuleVerdict

WORDS = ("proved", "bounded", "tested", "assumed", "unknown", "refuted")
USAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "rule_usage.json"  # written by benchmarks/rule_usage.py


@dataclass(frozen=True)
class EntryUsage:
    """How often the chosen programs of some models rest on each entry. `failed` are models that could not be optimized."""

    counts: Mapping[str, int]
    models: int
    failed: int


def recorded_usage(path: Path = USAGE) -> EntryUsage | None:
    """What benchmarks/rule_usage.py counted; None where coset is installed without its benchmarks."""
    if not path.exists():
        return None
    models = json.loads(path.read_text())["models"]
    counted = [model["rules"] for model in models.values() if "rules" in model]
    counts: Counter[str] = Counter()
    for rules in counted:
        counts.update(rules)
    return EntryUsage(counts, len(counted), len(models) - len(counted))


def shares(weights: Iterable[tuple[str, int]]) -> dict[str, float]:
    """The share of each assurance in the weights, all 0 where nothing weighs."""
    total: Counter[str] = Counter()
    for assurance, weight in weights:
        total[assurance] += weight
    return {word: total[word] / max(1, total.total()) for word in WORDS}


def families(verdicts: Sequence[RuleVerdict]) -> dict[str, dict[str, Any]]:
    """For each file of rules how many entries it has and the shares of their assurance."""
    own: dict[str, list[RuleVerdict]] = {}
    for verdict in verdicts:
        own.setdefault(Path(verdict.file).stem, []).append(verdict)
    return {name: {"rules": len(own[name]), **shares((v.assurance, 1) for v in own[name])} for name in sorted(own)}


def by_use(verdicts: Sequence[RuleVerdict], usage: EntryUsage) -> dict[str, Any]:
    """The shares where each entry weighs as much as it is used. `elsewhere` are uses of entries without a verdict: definitions, and
    other files."""
    weights = [(verdict.assurance, usage.counts.get(verdict.name, 0)) for verdict in verdicts]
    here = sum(weight for _, weight in weights)
    used = sum(weight > 0 for _, weight in weights)
    elsewhere = sum(usage.counts.values()) - here
    return {"models": usage.models, "failed": usage.failed, "uses": here, "rules": used, "elsewhere": elsewhere, **shares(weights)}


def median_seconds(verdicts: Sequence[RuleVerdict]) -> float | None:
    """The median time that verifying an entry took, s; None where all verdicts are from the lock file."""
    made = [verdict.seconds for verdict in verdicts if verdict.seconds > 0]
    return median(made) if made else None
