"""The parts of bench/copies.py: what is copied, by whom, in which process, and what the times say."""
