"""The map of frame limits: the largest frame of each path, idle and under load, each way."""

from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.studies.frame_limits import FrameLimits
from analysis.studies.scaling import short_names


def largest_frames(study: FrameLimits) -> Figure:
    """The largest frame [B] of each path, way and load, marked by what happens to larger ones."""
    with style.styled():
        table, names = study.map, short_names(study.dataset)
        figure, axes = drawing.new_figure(1.2 + 0.17 * len(table))
        for row, limit in enumerate(table.itertuples()):
            look = style.look(limit.way)
            axes.plot(limit.expected, row, "|", color=style.INK, markersize=12, label="by the path's description")
            for fault in filter(None, limit.fault.split(" or ")):
                axes.plot(limit.frame, row, style.FAULTS[fault], color=look.color, linestyle="", markersize=6)
                axes.plot([], [], style.FAULTS[fault], color=style.INK, linestyle="", label=f"larger ones: {fault}")
            if limit.blocks:
                axes.annotate(f"{limit.frame:.0f}", (limit.frame, row), (9, 0), textcoords="offset points",
                              va="center", fontsize=7.5)  # fmt: skip
        switch = published.nemo()["frame_limit"]["smc_8505t"]["frame"]["value"]
        axes.axvline(switch, color=style.FAINT, linewidth=1, zorder=0, label="published: the source's switches")
        loads = {False: "idle", True: "loaded"}
        drawing.rows(axes, [f"{names[it.path]}, {it.way}, {loads[it.load]}" for it in table.itertuples()])
        axes.set(xlabel="largest frame without its FCS [B]", xlim=(0, 10400))
        axes.tick_params(axis="y", labelsize=8)
        drawing.legend_below(figure, axes, 2)
        return figure
