"""What a run returns: the tree of draws, its summary, expectations and citations."""
