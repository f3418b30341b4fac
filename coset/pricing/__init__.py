"""What plans of kernels are predicted to take, and the plan that is cheapest."""
