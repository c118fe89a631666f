"""What people look at: reports, plots, notebooks, waveforms."""
