"""Simulate every truth of calibration.toml and write all tables to data/calibration."""

from analysis.statistics.calibration import FOLDER, load
from calibration import alarms, tournaments, verdicts

settings = load()
for name, simulate in {
    "error_rates": verdicts.simulate,
    "reproduction": verdicts.simulate_reproduction,
    "comparison": verdicts.simulate_comparison,
    "history_alarms": alarms.simulate_alarms,
    "history_losses": alarms.simulate_losses,
    "history_intervals": alarms.simulate_intervals,
    "tournament": tournaments.simulate,
}.items():
    rates = simulate(settings)
    rates.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.4f", lineterminator="\n")
    print(f"{name}, the largest:\n{rates.max(numeric_only=True).to_string()}\n")
