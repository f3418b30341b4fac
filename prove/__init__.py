"""Truth: tests of rules now; proofs and the certificate checker later."""
