"""Random sequences of driver calls, held against a plain model of contents and answers."""
