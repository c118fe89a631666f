"""From accumulators to features: thresholds, or requantisation."""
