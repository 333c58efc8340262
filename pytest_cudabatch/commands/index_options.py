"""The options by which fetch and bundle say where pip looks; the user's pip configuration applies anyway."""

from __future__ import annotations

import argparse

from pytest_cudabatch.runtimes import IndexOptions

__all__ = ["add_index_options", "index_of"]


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add pip's own options to ``parser``."""
    group = parser.add_argument_group("where pip looks, beside its own configuration")
    group.add_argument("--index-url", metavar="URL", help="the package index")
    group.add_argument("--extra-index-url", metavar="URL", action="append", default=[], help="another one")
    group.add_argument("--find-links", metavar="PLACE", action="append", default=[], help="wheels beside it")


def index_of(options: argparse.Namespace) -> IndexOptions:
    """Return what ``options`` say of the index."""
    return IndexOptions(options.index_url, tuple(options.extra_index_url), tuple(options.find_links))
