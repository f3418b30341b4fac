"""The e-graph: programs and rules encoded for egglog, a schedule with limits, and the saturated graph handed on."""
