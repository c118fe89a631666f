"""What people look at: a report on a build, pictures for notebooks, waveforms."""
