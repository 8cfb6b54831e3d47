"""What warm-up learns: step sizes, factors, the rungs, their weights, and sizes of subsamples."""
