"""Harbor's tasks, such as Terminal-Bench, with the candidate's agent in our sandbox.

Only the modules of this folder import `harbor`, which the extra `harbor` installs.
"""
