"""Settings for every suite: Hypothesis draws the same examples on every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "farthing",
    derandomize=True,
    deadline=None,  # the first use of the engine compiles
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("farthing")
