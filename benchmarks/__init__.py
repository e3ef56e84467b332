"""Benchmarks: `make bench`. Bounded to about two minutes on two cores."""
