"""The command ``mechdesign page``: a page on this computer, for people who use no shell."""

from __future__ import annotations

import argparse
import socket
import webbrowser
from contextlib import suppress
from pathlib import Path

from mechdesign.base import whole
from mechdesign.cli.options import command

_NOTE = """\
The page is for this computer alone, and for who has the address with its key. It reads tables in
the folder, and writes descriptions of their columns, and releases, there. Ctrl-C ends it. It needs
the extra 'page': pip install "mechdesign[page]"."""


@command(
    "page",
    "open a page in the browser that leads from a table to a published answer, and shows the"
    " command of each step",
    "page --folder survey",
    """
    --folder DIRECTORY [file]  whose tables are read, and where releases are written (default: this
        one)
    --port N [int]  of the address (default: any that is free)
    --no-browser  print the address, and open nothing
    """,
    notes=_NOTE,
)
def run_page(options: argparse.Namespace) -> None:
    folder = options.folder or Path()
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder")
    port = 0 if options.port is None else whole(options.port, "--port", 0, 65535)
    try:
        import uvicorn

        from rangeq.page.server import Page
    except ImportError as missing:
        raise ImportError(
            f"the page needs {missing.name}: pip install 'mechdesign[page]'"
        ) from missing
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()  # whoever comes before the server has begun waits
        page = Page(folder, listening.getsockname()[1])
        try:
            settings = uvicorn.Config(
                page, log_level="error", access_log=False, server_header=False, ws="none"
            )
            print(page.address, flush=True)
            with suppress(KeyboardInterrupt):  # which is how it ends
                if not options.no_browser:
                    webbrowser.open(page.address)
                uvicorn.Server(settings).run([listening])
        finally:
            page.close()
