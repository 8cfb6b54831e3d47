"""What a user brings: a problem or a target, the layout of its position, and its checks."""
