"""PyTorch in: graphs of ATen ops, as torch.compile captures them, become programs."""
