"""Where trials run: workers, isolation of candidate code, failures and retries."""
