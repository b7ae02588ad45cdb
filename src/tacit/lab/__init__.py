"""Running exhibits: what they are, how they are found, and folders that survive a kill."""
