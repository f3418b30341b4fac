"""Each mistake has one message, at the place where it stands, with a remedy; all of a file come in one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_texts import read_rules

MISTAKES = {
    "unused": ("rule r for x, y: F[S..] -(-x) => x numerics exact", "2:15", "`y` is not used"),
    "unbound_term": ("rule r for x: F[S..], y: F[S..] -(-x) => y numerics exact", "2:42", "`y` is not bound by the left side"),
    "unbound_value": ("rule r for x: F[S..] -(-x) => transpose(x, q) numerics exact", "2:44", "`q` is not bound"),
    "undeclared_term": ("rule r for x: F[S..] x + z => x numerics exact", "2:26", "`z` is not declared"),
    "same_sides": ("rule r for x, y: F[S..] x + y => x + y numerics exact", "2:25", "both sides are the same term"),
    "same_product": ("rule r for a, b, c: F[N, N] a @ (b @ c) => a @ (b @ c) numerics exact", "2:29", "both sides are the same term"),
    "declared_twice": ("rule r for x: F[S..], x: F[S..] -(-x) => x numerics exact", "2:23", "`x` is declared twice"),
    "shadowing": ("rule r for x: F[S..] -(-x) => y with x = y numerics exact", "2:38", "`x` is declared twice"),
    "shadows_word": (
        "rule r for compose: F[S..] -(-compose) => compose numerics exact",
        "2:12", "`compose` shadows a word of the language",
    ),
    "no_numerics": ("rule r for x: F[S..] -(-x) => x", "2:6", "the rule does not say what it promises about numbers"),
    "unknown_promise": ("rule r for x: F[S..] -(-x) => x numerics close", "2:33", "`close` is no promise about numbers"),
    "unknown_exception": ("rule r for x: F[S..] -(-x) => x numerics exact except rain", "2:33", "`rain` is no exception"),
    "approx_without_bound": ("rule r for x: F[S..] -(-x) => x numerics approx", "2:33", "the promise `approx` and its bound do not fit"),
    "unknown_op": ("rule r for x: F[S..] tanhh(x) => x numerics exact", "2:22", "there is no op `tanhh`"),
    "unknown_dialect": ("rule r for x: F[S..] tosa.tanh(x) => x numerics exact", "2:22", "the dialect `tosa` is not in use"),
    "unknown_attribute": (
        "rule r for x: F[S..] transpose(x, perm: p) => x numerics exact",
        "2:41", "`stablehlo.transpose` has no attribute `perm`",
    ),
    "missing_attribute": (
        "rule r for x: F[S..] transpose(x) => x numerics exact",
        "2:22", "`stablehlo.transpose` needs the attribute `permutation`",
    ),
    "missing_operand": ("rule r for x: F[S..] maximum(x) => x numerics exact", "2:22", "`maximum` takes 2 operands, not 1"),
    "bare_left": ("rule r for x: F[S..] x => -(-x) numerics exact", "2:22", "the left side is the bare variable `x`"),
    "bare_reverse": ("rule r for x: F[S..] -(-x) <=> x numerics exact", "2:32", "the left side is the bare variable `x`"),
    "wildcard": ("rule r for x: T[S..], y: T[] pad(x, y, a, b, _) => x numerics exact", "2:40", "`a` is used once"),
    "undeclared_dtype": ("rule r for x: G[S..] -(-x) => x numerics exact", "2:15", "the element type `G` is not declared"),
    "unknown_kind": ("rule r for x: T[S..], p: perm transpose(x, p) => x numerics exact", "2:26", "`perm` is no kind of value"),
    "permutation_of_a_term": (
        "rule r for x: T[S..], p: permutation(x) transpose(transpose(x, p), p) => x numerics exact",
        "2:38", "`x` is no pack and no dim",
    ),
    "permutation_of_nothing": (
        "rule r for x: T[S..], p: permutation(Q) transpose(transpose(x, p), p) => x numerics exact",
        "2:38", "`Q` is no pack and no dim",
    ),
    "pack_and_dim": ("rule r for x: F[S], y: F[S..] x + y => y + x numerics exact", "2:26", "`S` is a dim and a pack"),
    "no_shape": ("rule r for x: F[S..] splat(1) / splat(2) => x numerics exact", "2:22", "nothing says which shape this scalar takes"),
    "matmul": (
        "rule r for a: F[M, 64], b: F[32, N] a @ b => a @ b * 2 numerics exact",
        "2:37", "the columns of `a` are 64 but the rows of `b` are 32",
    ),
    "result_type": ("rule r for a: F[M, K] swap_last(a) => a numerics exact", "2:6", "the left side of `r` is"),
    "permutation_order": (
        "rule r for x: T[S..], p, q: permutation(S) transpose(transpose(x, p), q) => transpose(x, compose(q, p)) numerics exact",
        "2:6", "the left side of `r` is",
    ),
    "dtype": ("rule r for x: F[S..], y: I[S..] x + y => y + x numerics exact", "2:33", "`stablehlo.add` takes operands of one type"),
    "never_fires": ("rule r for x: F[S..] -(-x) => x where rank(x) == 99 numerics exact", "2:6", "`r` never fires"),
    "roots_and_a_bare_variable": (
        "rule r for x: F[S..] a = -x, b = x => x, x numerics exact\nphase algebra { r once }",
        "2:34", "the left side is the bare variable `x`",
    ),
    "roots_without_a_limit": (
        "rule r for x: F[S..] abs(-x), -(-x) => abs(x), x numerics exact",
        "2:6", "`r` has several roots and no limit",
    ),
    "roots_without_a_limit_in_a_phase": (
        "rule r for x: F[S..] abs(-x), -(-x) => abs(x), x numerics exact\nphase algebra { r }",
        "3:17", "`r` has several roots and no limit",
    ),
    "roots_and_fewer_terms": (
        "rule r for x: F[S..] abs(-x), -(-x) => abs(x) numerics exact",
        "2:40", "the right side does not say what 2 roots become",
    ),
    "roots_and_another_name": (
        "rule r for x: F[S..] a = abs(-x), b = -(-x) => a = abs(x), c = x numerics exact",
        "2:48", "the right side does not say what `a` and `b` become",
    ),
    "roots_and_a_bare_name": (
        "rule r for x: F[S..] a = abs(-x), b = -(-x) => b = x, a numerics exact",
        "2:48", "the right side does not say what `a` and `b` become",
    ),
    "roots_with_a_name_twice": (
        "rule r for x: F[S..] a = abs(-x), a = -(-x) => abs(x), x numerics exact",
        "2:22", "the roots of a rule have one name each, or none",
    ),
    "roots_of_other_types": (
        "rule r for x: F[M, N] abs(-x), swap_last(-x) => abs(x), -x numerics exact\nphase algebra { r once }",
        "2:6", "the left side of `r` is",
    ),
    "roots_that_stay": (
        "rule r for x: F[S..] abs(-x), -(-x) => abs(-x), -(-x) numerics exact\nphase algebra { r once }",
        "2:22", "both sides are the same term",
    ),
    "variadic": ("rule r for xs..: F[S..] -(-xs) => xs numerics exact", "2:12", "variadic operands are not there yet"),
    "kernel_without_a_target": ("kernel onnx.Mine(x: F[N]) means -x numerics exact", "2:27", "unexpected `means`"),
    "test_without_a_variable": (
        "rule r for x, y: F[S..] x - y => x + -y numerics exact test x = 1: f32",
        "2:56", "the test does not say what `y` is",
    ),
    "test_of_nothing": ("rule r for x: F[S..] -(-x) => x numerics exact test x = 1: f32, z = 2", "2:65", "`z` is no name of this entry"),
    "test_given_twice": ("rule r for x: F[S..] -(-x) => x numerics exact test x = 1: f32, x = 2", "2:48", "`x` is given twice"),
    "test_without_a_type": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = [1, 2]",
        "2:53", "nothing says which element type `x` has",
    ),
    "test_of_another_type": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = [1, 2]: f33",
        "2:53", "there is no element type `f33`",
    ),
    "test_with_ragged_rows": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = [[1, 2], [3]]: f32",
        "2:66", "the rows of this tensor differ in shape",
    ),
    "test_without_numbers": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = [1, y]: f32",
        "2:61", "a tensor is written number by number",
    ),
    "test_out_of_range": ("rule r for x: I[S..] -(-x) => x numerics exact test x = [1, 300]: i8", "2:61", "this is no number of type i8"),
    "test_with_too_many_values": (
        "rule r for x: F[S..] -(-x) => x numerics exact test x = 1: f32 => 1, 2",
        "2:67", "there are 2 values for 1 result",
    ),
    "test_not_with_a_value": (
        "rule r for x: F[S..] -(-x) => x numerics exact test not x = 1: f32 => 1",
        "2:71", "what does not fire has no result",
    ),
    "test_of_an_op_without_a_value": (
        "op onnx.Mine(x: F[S..]) means x + x numerics exact test x = 1: f32",
        "2:52", "this test says nothing about the op",
    ),
    "optional_without_default": (
        "rule r for x?: F[S..] -(-x) => x numerics exact",
        "2:12", "`x?` needs the value that stands for its absence",
    ),
    "unknown_in_phase": ("phase algebra { r }", "2:17", "there is no rule `r`"),
    "unknown_direction": (
        "rule r for x: F[S..] -tanh(x) <=> tanh(-x) numerics exact\nphase algebra { r.backward }",
        "3:17", "`r` has no direction `backward`",
    ),
    "only_direction": ("rule r for x: F[S..] -(-x) => x numerics exact\nphase algebra { r.forward }", "3:17", "`r` has one direction"),
    "direction_twice": (
        "rule r for x: F[S..] -tanh(x) <=> tanh(-x) numerics exact\nphase algebra { r, r.reverse }",
        "3:20", "`r.reverse` is twice in one phase",
    ),
    "direction_of_nothing": ("phase algebra { r.forward }", "2:17", "there is no rule `r.forward`"),
    "duplicate": ("rule r for x: F[S..] -(-x) => x numerics exact\nrule r for x: F[S..] -(-x) => x numerics exact", "3:6",
                  "`r` is the name of two rules"),
    "op_without_dialect": ("op twice(x: F[S..]) means x + x numerics exact", "2:4", "the op `twice` has no dialect"),
    "op_taken": ("op stablehlo.tanh(x: F[S..]) means x + x numerics exact", "2:4", "the op `stablehlo.tanh` is there already"),
    "syntax": ("rule r for x: F[S..] -(-x) = x numerics exact", "2:28", "unexpected `=`"),
    "character": ("rule r for x: F[S..] -(-x) => x; numerics exact", "2:32", "`;` does not belong to the rule language"),
    "early_end": ("rule r for x: F[S..] -(-x) =>", "2:30", "the file ends too early"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    text, place, message = MISTAKES[name]
    _, errors = read_rules(tmp_path, text + "\n")
    assert errors, "the mistake went unnoticed"
    found = errors[0]
    assert found.message.startswith(message), str(found)
    assert found.place is not None
    assert f"{found.place.line}:{found.place.column}" == place, str(found)
    assert "^" in str(found)


def test_every_mistake_of_a_file_is_reported(tmp_path: Path) -> None:
    wrong = ("unused", "unbound_term", "bare_left", "result_type")
    texts = [MISTAKES[name][0].replace("rule r", f"rule r{i}") for i, name in enumerate(wrong)]
    rules, errors = read_rules(tmp_path, "\n".join([*texts, "rule good for x: F[S..] -(-x) => x numerics exact"]))
    assert [error.place.line for error in errors if error.place] == [2, 3, 4, 5]
    assert rules.family("good")


def test_an_error_reads_well(tmp_path: Path) -> None:
    _, errors = read_rules(tmp_path, MISTAKES["matmul"][0])
    lines = str(errors[0]).splitlines()
    assert lines[0] == "error: the columns of `a` are 64 but the rows of `b` are 32"
    assert lines[1].endswith("given.rules:2:37")
    assert lines[3].endswith("^^^^^")
    assert lines[4] == "  help: write a: F[.., 64], b: F[64, ..]"
