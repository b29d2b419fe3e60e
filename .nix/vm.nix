# Two virtual machines, each with a second network card that the module hands to ndpip: the whole way of the testbed, with
# virtio in the place of Broadcom's card and without an IOMMU. A file goes over, and both ends compute its sum.
{
  testers,
  testbed,
}:

let
  node =
    {
      address,
      mac,
      peer,
      ...
    }@settings:
    {
      imports = [ testbed ];
      virtualisation = {
        cores = 3;
        memorySize = 2048;
        # On the switch of network 1, as the first card, at an address that is known beforehand.
        vlans = [ 1 ];
        qemu.options = [
          ''-netdev vde,id=ndpip,sock="$QEMU_VDE_SOCKET_1"''
          "-device virtio-net-pci,netdev=ndpip,mac=${mac},addr=0x1e,disable-legacy=on"
        ];
      };
      ndpip = {
        enable = true;
        device = "0000:00:1e.0";
        iommu = "none";
        hugepages = {
          size = "2M";
          count = 256;
        };
        cpus = [
          1
          2
        ];
        inherit address mac;
        neighbours = peer;
      }
      // removeAttrs settings [
        "address"
        "mac"
        "peer"
      ];
    };

  receiver = "52:54:00:6e:64:01";
  sender = "52:54:00:6e:64:02";
in
testers.runNixOSTest {
  name = "ndpip-testbed";

  nodes.receiver = node {
    address = "10.0.0.1/24";
    mac = receiver;
    peer."10.0.0.2" = sender;
    receiver = [
      "--out"
      "/tmp/received"
      "--sha256"
    ];
  };
  nodes.sender = node {
    address = "10.0.0.2/24";
    mac = sender;
    peer."10.0.0.1" = receiver;
    sender = {
      to = "10.0.0.1";
      options = [
        "--file"
        "/tmp/sent"
        "--sha256"
      ];
    };
  };

  testScript = ''
    start_all()
    for host in receiver, sender:
        host.wait_for_unit("ndpip-bind.service")
        host.succeed("readlink /sys/bus/pci/devices/0000:00:1e.0/driver | grep -q '/vfio-pci$'")
        host.succeed("grep -q 'isolcpus=1,2' /proc/cmdline")
        host.succeed("ndpip-doctor doctor --runtime --pci 0000:00:1e.0 --cpus 1,2")

    sender.succeed("head -c 64M /dev/urandom > /tmp/sent")
    receiver.succeed("systemctl start ndpip-recv.service")
    sender.succeed("systemctl start ndpip-send.service")
    receiver.wait_until_succeeds("test \"$(systemctl show -P SubState ndpip-recv.service)\" = dead", timeout=120)

    sent = sender.succeed("sha256sum < /tmp/sent")
    received = receiver.succeed("sha256sum < /tmp/received")
    assert sent == received, f"sent {sent}, received {received}"
    receiver.succeed("test \"$(systemctl show -P Result ndpip-recv.service)\" = success")
    sender.succeed("test \"$(systemctl show -P Result ndpip-send.service)\" = success")

    # The kernel gets its card back.
    receiver.succeed("systemctl stop ndpip-bind.service")
    receiver.succeed("readlink /sys/bus/pci/devices/0000:00:1e.0/driver | grep -q '/virtio-pci$'")
  '';
}
