"""What a solve returns: the result, its independent check, its files."""
