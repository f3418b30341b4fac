"""The forms of ONNX Runtime's nodes are what the installed version says; those of ONNX come from its own schemas."""

from __future__ import annotations

import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from coset.dialects.onnx.node import BUILDERS, DEFINITIONS
from coset.frontends.onnx.checked import RUNTIME, form_for
from coset.frontends.onnx.runtime_forms import FORMS, VERSION

SCHEMAS = {schema.name: schema for schema in runtime.get_all_operator_schema() if schema.domain == RUNTIME}
NAMES = sorted(name.removeprefix(f"{RUNTIME}.") for name in {*BUILDERS, *DEFINITIONS} if name.startswith(RUNTIME))


@pytest.mark.skipif(onnxruntime.__version__ != VERSION, reason=f"the table is of ONNX Runtime {VERSION}")
@pytest.mark.parametrize("name", NAMES)
def test_a_form_is_what_onnx_runtime_says(name: str) -> None:
    schema, form = SCHEMAS[name], FORMS[name]
    assert (form.inputs, form.outputs) == ((schema.min_input, schema.max_input), (schema.min_output, schema.max_output))
    single = [(place, formal.name) for place, formal in enumerate(schema.inputs) if str(formal.option).endswith("Single")]
    kinds = {key: (str(formal.type).split(".")[-1].lower(), formal.required) for key, formal in schema.attributes.items()}
    assert list(form.required) == single and form.attributes == kinds


def test_the_table_has_those_with_a_meaning_and_no_others() -> None:
    assert sorted(FORMS) == NAMES
    assert form_for("Nothing", 1, RUNTIME) is None and form_for("Add", 17, "") is not None
