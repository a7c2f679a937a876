"""Read models of a run: what every display, export and workspace shows.

Each module projects the state or the journal of a run into frozen records with `to_json`. The
command line and the workspaces of proposers only lay these records out.
"""
