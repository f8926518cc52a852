"""How all tests run: half of hypothesis' usual examples, so that the whole suite stays within minutes."""

from hypothesis import settings

settings.register_profile("suite", max_examples=50)
settings.load_profile("suite")
