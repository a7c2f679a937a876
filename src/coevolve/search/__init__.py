"""The search engine: candidates, budgets, events, the state of a run and the loop."""
