"""How a run is carried out: stages in blocks, checkpoints, progress, and the identity of a run."""
