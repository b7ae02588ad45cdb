"""`min2024.overstated`: how far common attacks overstate robust accuracy as p grows."""
