"""From a bill to who pays: pure functions over bill lines, and the night that runs them."""
