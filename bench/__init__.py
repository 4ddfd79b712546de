"""What docs/benchmarks.md claims, measured: ratios, each against something measured in the same run."""
