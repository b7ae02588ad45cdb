"""`allenzhu2020.fig3`: Linear models are fragile, thresholded ones are not."""
