"""The one exception for input the program cannot use."""


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and what to do.

    The command line prints it as one line and exits with code 2; any other exception is a bug.
    """
