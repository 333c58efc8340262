"""Tests of the native parts: what the built libraries are, and what programs on top of them see."""
