"""The hub: StableHLO and CHLO, the ops that rules are written in."""
