"""WaveGrid: square waves of random period and phase over pairs of attributes, and what is made of
them.
"""
