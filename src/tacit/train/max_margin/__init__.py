"""Where the flow ends: max-margin nets by convex programs."""
