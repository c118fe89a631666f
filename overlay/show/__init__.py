"""Views for people: a report on a build, pictures for notebooks, waveforms."""
