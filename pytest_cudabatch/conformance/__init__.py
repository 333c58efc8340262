"""The built-in suite's cases, one file per kind of failure. They use the public fixtures only."""
