"""Which of all equal programs runs fastest on a target: costs, greedy and exact extraction, and the bound that says how good it is."""
