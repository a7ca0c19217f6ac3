"""Where a kernel takes what a page says: in the sub-shell that the page itself speaks over."""

from __future__ import annotations

__all__ = ["hear_page_where_it_speaks"]


def hear_page_where_it_speaks(comm: object) -> None:
    """Let each message of a page go to the sub-shell that the page named in it, and not to another.

    ipykernel 7.4 sends it to where the comm last spoke from. That changes with each batch, may be the
    main thread that a cell blocks, and may be a sub-shell that ended with an earlier page: the message is
    lost then, and so is every later one. Other versions do without this and never ask for it.

    Args:
        comm: A widget's; None outside a kernel.
    """
    if comm is not None:
        vars(comm)["_reply_subshell_for"] = _as_named


def _as_named(_data: object, subshell: str | None) -> str | None:
    return subshell
