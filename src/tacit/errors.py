"""The two ways a user's request can fail, each one line in the user's words.

`CallError`: the call was wrong (exit status 2). `RunError`: the call was right, but the run could
not be done (exit status 1). The command line prints the message and no traceback.
"""


class TacitError(Exception):
    """A failure with a message for the user: it names the value and the remedy."""

    exit_status = 1


class CallError(TacitError, ValueError):
    """The call was wrong: an unknown id, a mistyped key, K1 > K, p < 1."""

    exit_status = 2


class RunError(TacitError, RuntimeError):
    """The run could not be done: a folder that cannot be written, a damaged folder, a broken exhibit."""
