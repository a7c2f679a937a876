"""Trials on the nodes of a Ray cluster; nothing here imports Ray until an executor is built."""
