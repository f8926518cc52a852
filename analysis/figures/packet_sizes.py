"""The figure of packet sizes: datagrams per second at the receiver and their loss, over the frame."""

from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.packet_sizes import PacketSizes
from analysis.studies.scaling import short_names

SIDESTEP = 0.08  # of a doubling, between two paths
APART = 1.4  # ticks closer than this factor would write over each other


def packets_over_size(study: PacketSizes) -> Figure:
    """Packets received [1/s] with the wire's limit (left) and their loss [%] (right), over the frame [B]."""
    with style.styled():
        found, names = study.points, short_names(study.dataset)
        figure, (packets, loss) = drawing.new_figures(3.2, 2)
        sizes = found.frame_bytes.values
        for number, path in enumerate((study.reference, study.compared)):
            x, chosen = sizes * 2 ** (SIDESTEP * (number - 0.5)), found.sel(path=path)
            drawing.runs(packets, path, x, chosen.received, names[path])
            drawing.intervals(packets, path, x, chosen.received, "rate")
            drawing.runs(loss, path, x, 100 * chosen.loss, names[path])
            lost = 100 * study.losses.sel(path=path)
            for place, size in zip(x, sizes):
                at = lost.sel(frame_bytes=size)
                drawing.interval(loss, path, place, *(float(at[end]) for end in ("loss", "low", "high")))
        limit = found.limit.sel(path=study.reference)
        packets.plot(sizes, limit, color=style.INK, linewidth=0.8, label="wire limit", gid=drawing.BOUND)
        packets.set(yscale="log", ylabel="packets received [1/s]")
        loss.set(ylabel="loss [%]", ylim=(0, None))
        for axes in (packets, loss):
            drawing.doubling_axis(axes, drawing.apart(sizes, APART), "frame without its FCS [B]")
            axes.tick_params(axis="x", labelrotation=90)
        drawing.legend_below(figure, (packets, loss), 3)
        return figure
