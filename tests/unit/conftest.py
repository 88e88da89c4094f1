from hypothesis import settings

# The machine is shared and noisy: a slow example is no failure.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
