/* The exchange of incast.c between the model nodes of ns-3, packet by packet:
 *
 *   incast_ns3 BIT_S DELAY BUFFER MARK RTO_MIN TCP SENDERS BYTES BLOCKS SECONDS
 *
 * All nodes are on one switch by links of BIT_S bit/s on Ethernet's wire. A packet takes DELAY seconds from the end of one
 * link to the end of the next. BUFFER and MARK [B] are those of buffered_switch.c, for the port to the receiver; TCP is
 * cubic, reno or dctcp, and RTO_MIN [s] its least retransmission timeout. It prints what `incast fetch` prints; segments
 * sent again are not counted (-1). ns-3 has neither RACK nor tail loss probes. */

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5301;
constexpr uint32_t REQUEST = 8;
// Bytes of a full packet: in IP, as ns-3's link counts it, in a switch's memory, on Ethernet's wire.
constexpr double PACKET = 1500, COUNTED = 1502, FRAME = 1518, ON_WIRE = 1538;
constexpr uint32_t SEGMENT = 1448;

struct Sender
{
    Ptr<Socket> client;     // the receiver's end of the connection
    uint64_t left = 0;      // of the block that is under way [B]
    long timeouts = 0;
};

std::vector<Sender> g_senders;
uint64_t g_bytes;
long g_blocks, g_done = -1; // the first block is not counted
double g_seconds, g_begin, g_first;
Ptr<UniformRandomVariable> g_jitter;

void
Ask()
{
    g_begin = Simulator::Now().GetSeconds();
    for (auto& sender : g_senders)
    {
        sender.left = g_bytes;
        sender.client->Send(Create<Packet>(REQUEST));
    }
}

void
BlockEnds()
{
    double now = Simulator::Now().GetSeconds();
    if (g_done < 0)
    {
        std::printf("incast: %zu senders, %" PRIu64 " bytes from each, first block %.9f s\n",
                    g_senders.size(), g_bytes, now - g_begin);
        g_first = now;
        for (auto& sender : g_senders)
        {
            sender.timeouts = 0;
        }
    }
    else
    {
        std::printf("%ld %.9f\n", g_done + 1, now - g_begin);
    }
    g_done++;
    if (g_done < g_blocks && (!g_done || now - g_first < g_seconds))
    {
        Ask();
    }
    else
    {
        Simulator::Stop();
    }
}

void
Receive(size_t number, Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        g_senders[number].left -= packet->GetSize();
    }
    for (const auto& sender : g_senders)
    {
        if (sender.left)
        {
            return;
        }
    }
    BlockEnds();
}

void
Reply(Ptr<Socket> socket)
{
    socket->Send(Create<Packet>(g_bytes));
}

// A request comes whole; the answer follows after some microseconds, which differ.
void
Requested(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
        Simulator::Schedule(Seconds(g_jitter->GetValue()), &Reply, socket);
    }
}

void
StateChanges(size_t number, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t to)
{
    g_senders[number].timeouts += to == TcpSocketState::CA_LOSS;
}

void
Accepted(size_t number, Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&Requested));
    socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&StateChanges, number));
}

void
Connect(Ptr<Node> receiver, size_t number, Ipv4Address address)
{
    Ptr<Socket> client = Socket::CreateSocket(receiver, TcpSocketFactory::GetTypeId());
    g_senders[number].client = client;
    client->SetRecvCallback(MakeBoundCallback(&Receive, number));
    client->Connect(InetSocketAddress(address, PORT));
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 11)
    {
        std::fprintf(stderr, "usage: incast_ns3 BIT_S DELAY BUFFER MARK RTO_MIN TCP SENDERS BYTES BLOCKS SECONDS\n");
        return 2;
    }
    double bit_s = std::atof(argv[1]), delay = std::atof(argv[2]), buffer = std::atof(argv[3]);
    double mark = std::atof(argv[4]);
    std::string tcp = argv[6];
    size_t senders = std::atol(argv[7]);
    g_bytes = std::atoll(argv[8]);
    g_blocks = std::atol(argv[9]);
    g_seconds = std::atof(argv[10]);
    std::map<std::string, std::string> types = {{"cubic", "ns3::TcpCubic"},
                                                {"reno", "ns3::TcpLinuxReno"},
                                                {"dctcp", "ns3::TcpDctcp"}};
    if (!types.count(tcp) || senders < 1 || bit_s <= 0)
    {
        std::fprintf(stderr, "incast_ns3: TCP is cubic, reno or dctcp, of 1 sender or more\n");
        return 2;
    }
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(types[tcp]));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    // Whole blocks fit, so that TCP's window is never the buffers'.
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * g_bytes + (1 << 22)));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    // Linux delays an acknowledgement by at least 40 ms, but by less than the least timeout.
    double rto_min = std::atof(argv[5]);
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(std::min(0.04, 0.8 * rto_min))));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(rto_min)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15)); // as Linux, not ns-3's 6
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    if (mark > 0 || tcp == "dctcp")
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }
    g_jitter = CreateObject<UniformRandomVariable>();
    g_jitter->SetAttribute("Max", DoubleValue(ON_WIRE * 8 / bit_s)); // a full frame's time on the wire
    g_senders.resize(senders);

    NodeContainer nodes;
    nodes.Create(senders + 2);
    Ptr<Node> hub = nodes.Get(0);
    InternetStackHelper().Install(nodes);
    PointToPointHelper link;
    // ns-3's link knows no preamble, checksum or gap: a full packet takes as long as on Ethernet.
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(bit_s * COUNTED / ON_WIRE))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay / 2)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    // Of the packets in the memory one is on the link and one in its queue.
    long packets = std::max(1L, long(buffer / FRAME) - 2);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> of_node(senders + 2);
    for (size_t i = 1; i < senders + 2; i++)
    {
        NetDeviceContainer ends = link.Install(hub, nodes.Get(i));
        bool to_receiver = i == 1;
        TrafficControlHelper endless, shallow;
        endless.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000000p"));
        if (mark > 0)
        {
            // RED with one threshold and no average is a switch's marking (Alizadeh et al., SIGCOMM 2010).
            long least = std::max(1L, long(mark / FRAME) - 2);
            shallow.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(std::to_string(packets) + "p"),
                                     "MinTh", DoubleValue(least), "MaxTh", DoubleValue(least), "QW", DoubleValue(1),
                                     "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false),
                                     "LinkBandwidth", DataRateValue(DataRate(uint64_t(bit_s))));
        }
        else
        {
            shallow.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(std::to_string(packets) + "p"));
        }
        (to_receiver ? shallow : endless).Install(ends.Get(0));
        endless.Install(ends.Get(1));
        of_node[i] = addresses.Assign(ends).GetAddress(1);
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    for (size_t i = 0; i < senders; i++)
    {
        Ptr<Socket> listener = Socket::CreateSocket(nodes.Get(i + 2), TcpSocketFactory::GetTypeId());
        listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        listener->Listen();
        listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                    MakeBoundCallback(&Accepted, i));
        Simulator::Schedule(Seconds(0.01 * i), &Connect, nodes.Get(1), i, of_node[i + 2]);
    }
    Simulator::Schedule(Seconds(0.01 * senders + 20 * delay + 1), &Ask);
    Simulator::Run();
    for (size_t i = 0; i < senders; i++)
    {
        std::printf("sender %zu: %ld timeouts, -1 retransmitted\n", i + 1, g_senders[i].timeouts);
    }
    std::printf("end of incast\n");
    Simulator::Destroy();
    return 0;
}
