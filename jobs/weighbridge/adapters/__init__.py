"""One outside thing per file: it obeys, retries briefly, and turns foreign errors into ours."""
