"""`allenzhu2020.from_pure`: clean training from pure features accumulates the mixture."""
