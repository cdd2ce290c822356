"""Every error a caller can meet: what asking again can mend, and what it cannot."""


class WeighbridgeError(Exception):
    """Base of all errors of ours. The message is written for the person who has to act on it."""

    exit_code = 1


class Refused(WeighbridgeError):
    """Asking again cannot help: somebody has to change the input, the policy or the request."""

    exit_code = 2


class BillRefused(Refused):
    """A delivery or a file cannot be taken as it is: damaged, unknown, or not provably complete."""


class TotalsDiffer(Refused):
    """Two layers that must hold the same money do not; the message has both numbers."""


class PolicyRefused(Refused):
    """A policy file says something that is unknown, ambiguous or impossible; file and row are named."""


class LakeTooNew(Refused):
    """The lake was written by a newer Weighbridge than this one."""


class LeaseHeld(WeighbridgeError):
    """Another run writes to this lake; the message names it and says since when."""


class LeaseLost(WeighbridgeError):
    """This run may no longer write to its lake: its lease ran out or was taken over."""


class Unavailable(WeighbridgeError):
    """Something outside did not answer; the same call may work later."""
