"""Starts the conformance fixture of the Python SDK's source distribution: ``stdio`` or ``http PORT``.

The fixture is installed from the registry when the tests run; its folder is in PYTHONPATH.
"""

import sys

from mcp_everything_server.server import event_store, mcp

if sys.argv[1] == "stdio":
    mcp.run(transport="stdio")
else:
    mcp.run(transport="streamable-http", port=int(sys.argv[2]), event_store=event_store, retry_interval=100)
