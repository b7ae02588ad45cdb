"""Figure 8: which filters of AlexNet's first layer win, and from when on that is known."""
