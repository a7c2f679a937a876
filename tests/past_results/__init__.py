"""Tests of the readers of past results."""
