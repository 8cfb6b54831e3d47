"""One file a sampler: `PACKAGES`, whose versions matter, and `run(seed) -> (weight, log_z, num_evaluations)`."""
