"""Tests native CUDA batch copies across pairings of a runtime and a driver."""
