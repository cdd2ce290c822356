"""What finance asks, and how the answer is handed over."""
