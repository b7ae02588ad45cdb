"""Figure 1: the filters of AlexNet's first layer, clean and robust."""
