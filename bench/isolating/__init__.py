"""Parts of bench/isolation.py."""
