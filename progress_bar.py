"""What a running campaign says: a bar with the time left on a terminal, otherwise a line for each trial."""

from runners.campaign import Event, Listener
from runners.record import Settings, Trial

# The levels that tell trials on the same nodes apart.
_TOLD = (
    "aggregation", "ranks_per_node", "N", "noise", "blas", "mtu", "direction", "frame_bytes", "window_bytes",
    "congestion_control", "streams", "load", "pairs", "token_bytes",
)  # fmt: skip


def progress() -> Listener:
    """Draw the engine's events: a bar with ETA on a terminal, otherwise a line for each trial."""
    from tqdm import tqdm

    bar = tqdm(total=0, unit="trial", disable=None, leave=False, bar_format="{l_bar}{bar}| {n}/{total} {desc}")
    failed: list[str] = []

    def listen(event: Event) -> None:
        bar.total, bar.n = event.total, event.done
        if event.kind == "started":
            bar.set_description_str(f"{describe(event.trial)}, {remaining(event.eta_s)}")
        elif event.kind == "finished":
            if event.outcome.status != "ok":
                failed.append(f"{describe(event.trial)}: {event.outcome.status}, {event.outcome.reason}")
            if bar.disable:
                said = f"[{event.done}/{event.total}] {describe(event.trial)}: {event.outcome.status}"
                print(f"{said}, {remaining(event.eta_s)}", flush=True)
        elif event.kind == "ended":
            bar.close()
            print(f"Campaign ended by: {event.message}; {event.done} trials are there, {len(failed)} without a result")
            print("".join(f"  {line}\n" for line in failed), end="", flush=True)

    return listen


def describe(trial: Trial) -> str:
    """A trial in a few words."""
    point = trial.point
    network = point.get("interconnect", point.get("path", "?"))
    levels = "".join(f", {name} {point[name]}" for name in _TOLD if name in point)
    return f"block {trial.block}, {trial.role}, {trial.runner} on {network}{_where(point)}{levels}"


def _where(point: Settings) -> str:
    if "nodes" in point:
        return f", {point['nodes']} nodes"
    if "sender" not in point:
        return ""
    far_end = point["receiver"] if "receiver" in point else f"{point.get('receivers', '?')} others"
    return f", node {point['sender']} to {far_end}"


def remaining(seconds: float | None) -> str:
    return "time left unknown" if seconds is None else f"about {seconds / 60:.1f} min left"
