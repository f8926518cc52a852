"""The figure of TCP's cost model: CPU time per byte at both ends over the MTU."""

import numpy as np
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.tcp_cost import TcpCost
from analysis.wire import tcp_payload

NANO = 1e-9


def cost_over_mtu(study: TcpCost) -> Figure:
    """CPU time [ns/B] or instructions per byte of every block over the MTU, with the model's 95 % band and the MTU
    left out."""
    unit, label = (1, "instructions per byte") if study.instructions else (NANO, "CPU time per byte [ns/B]")
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        mtus = study.points.mtu.values
        along = np.geomspace(mtus.min(), mtus.max(), 80)
        for end in study.ends:
            values = end.values / unit
            drawing.runs(axes, end.name, mtus, values, f"{end.name} end")
            drawing.intervals(axes, end.name, mtus, values, "cost")
            if end.fitted:
                parts = (part / unit for part in end.fitted.band(tcp_payload(along), "cost"))
                drawing.band(axes, end.name, along, *parts)
        axes.axvline(study.left_out, color=style.FAINT, linewidth=1, zorder=0, label="left out of the prediction")
        axes.set(xscale="log", ylabel=label, xlabel="MTU [B]", ylim=(0, None))
        axes.set_xticks(mtus, [str(mtu) for mtu in mtus])
        axes.minorticks_off()
        drawing.legend_below(figure, axes, 3)
        return figure
