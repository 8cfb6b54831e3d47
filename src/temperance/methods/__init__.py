"""The methods that `sample` knows by name."""
