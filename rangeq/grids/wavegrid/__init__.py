"""WaveGrid: square waves of random period and phase over pairs of attributes."""
