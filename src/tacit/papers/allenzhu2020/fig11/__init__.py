"""`allenzhu2020.fig6` and `allenzhu2020.fig11`: what neurons of a layer want to see, through its three stages."""
