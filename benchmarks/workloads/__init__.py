"""Programs as people write them, where algebra pays: importing this registers them all in `WORKLOADS`."""

from benchmarks.workload import WORKLOADS, Workload
from benchmarks.workloads import adapters, exports, heads, products

__all__ = ["WORKLOADS", "Workload", "adapters", "exports", "heads", "products"]
