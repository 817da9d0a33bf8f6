"""The exception for input that the program cannot use, and the warning for what it drops, ignores or solves badly."""


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and what to do.

    The command line prints it as one line and exits with code 2; any other exception is a bug.
    """


class GraphWarning(UserWarning):
    """Something in the input was dropped or ignored, or a model does not suit it."""
