"""Other ways to solve the same problems, to compare with."""
