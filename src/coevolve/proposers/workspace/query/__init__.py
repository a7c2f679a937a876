"""Questions about a search and their answers, for agents in a workspace and for people.

The package stands alone: it uses the standard library only and runs under Python 3.9, since it is
packed into every workspace as `bin/coevolve`, to be run by whatever Python an agent has.
"""
