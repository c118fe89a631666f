"""Models of ours for other tools."""
