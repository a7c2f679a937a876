"""What a trial is."""
