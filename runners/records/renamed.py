"""Names that were given up, each with the present one. Recorded plans, users' folders and archives
still have the old ones, which never get a new meaning."""

CAMPAIGNS = {  # stand in plans, and in the names of their folders
    "tcp_mtu": "mtu",
    "tcp_cost": "mtu_cpu",
    "frame_limits": "frame_size_limit",
    "packet_sizes": "frame_size_rate",
    "message_latency": "ping_pong",
    "link_hpl": "link_bonding_hpl",
    "link_micro": "link_bonding_tcp",
    "hpl_paper": "hpl_paper_simulated",
    "hpl_table1": "hpl_paper_emulated",
    "hpl_sensitivity": "hpl_paper_sensitivity",
    "hpl_invariance": "scale_model_dilation",
    "hpl_chain": "scale_model_chain",
    "hpl_beyond": "hpl_larger",
    "hpl_payload": "hpl_messages",
    "long_repeats": "long_path_repeats",
    "programs": "replay_examples",
    "real_programs": "replay_others",
    "token_nodes": "twin_tokens",
    "token_load": "twin_load",
    "hpl_buffers": "switch_buffers_hpl",
    "program_buffers": "switch_buffers_programs",
    "topology": "oversubscription",
    "hpl_topology": "oversubscription_hpl",
    "real_programs_emulated": "program_others_emulated",
    "real_programs_compared": "program_others_replayed",
    "hpcc_emulated": "program_others_hpcc",
}
NOTEBOOKS = {  # stand in archives and scripts
    "05_your_own_data": "40_hpl_scaling",
    "06_your_own_messages": "12_ping_pong",
    "07_your_own_streams": "52_parallel_streams",
    "08_faster_networks": "55_twin",
    "09_your_own_operations": "13_collectives",
    "10_switch_mtu": "10_mtu",
    "11_frames": "11_frame_size",
    "12_message_latency": "12_ping_pong",
    "47_hpl_beyond": "47_hpl_larger",
    "54_programs": "54_replay",
    "57_hpl_buffers": "57_switch_buffers",
    "60_topology": "60_oversubscription",
    "62_real_programs": "62_program_others",
}
TESTBED_KINDS = {"paths": "emulated"}  # stand in plans
SOURCES = {"smith": "fortinet", "bonding_blog": "bonding"}


def campaign(name: str) -> str:
    """What a campaign is called now."""
    return CAMPAIGNS.get(name, name)


def names(campaign: str) -> list[str]:
    """What a campaign is and was called."""
    return [campaign, *(old for old, new in CAMPAIGNS.items() if new == campaign)]


def present(name: str) -> str:
    """What a campaign, its folder, a notebook or a source is called now; empty if nothing of this
    name was renamed.
    """
    stem, *testbed = name.split("-", 1)
    new = {**CAMPAIGNS, **NOTEBOOKS, **SOURCES}.get(stem, "")
    return "-".join([new, *testbed]) if new else ""
