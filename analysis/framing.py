"""What a message takes of Ethernet: it goes in full frames, of which the last is as short as it is."""

import numpy as np

from analysis.wire import INSIDE_MTU, OUTSIDE_MTU


def message_wire_bytes(size, mtu, headers=INSIDE_MTU):
    """Bytes [B] that Ethernet spends on a message of `size` [B] over TCP, with headers, preambles and gaps.

    `headers` [B] are those inside each packet of at most `mtu` [B]: IPv4's and TCP's, with timestamps unless
    said otherwise. Acknowledgements of their own come on top, so that no message takes less.
    """
    frames = np.ceil(size / (mtu - headers))
    return size + frames * (headers + OUTSIDE_MTU)
