"""Implementations that others ship, driven through their own operators. A package is imported in the cell."""
