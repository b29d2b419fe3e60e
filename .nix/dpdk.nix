# DPDK for one CPU target, with the drivers that this project is used with, and without the many others.
{
  lib,
  dpdk,
  machine,
  static,
}:

let
  # A driver that is named in full must be built, or the build of DPDK ends; one with a star is built if it can be.
  drivers = [
    "bus/auxiliary"
    "bus/pci"
    "bus/vdev"
    "mempool/ring"
    "mempool/stack"

    # Memory and the kernel.
    "net/memif"
    "net/null"
    "net/ring"
    "net/tap"
    "net/af_packet"
    "net/af_xd*" # where libxdp is at hand

    # Cards. The paper's testbed has Broadcom's; virtio is that of virtual machines. Intel's have moved to a folder of
    # their own with DPDK 25.03: the name that does not exist is passed over.
    "net/bnxt"
    "net/ena"
    "net/virtio"
    "common/mlx*"
    "net/mlx5*"
    "common/iavf*"
    "common/idpf*"
    "net/ixgb*"
    "net/i40*"
    "net/iav*"
    "net/ic*"
    "net/intel/ixgb*"
    "net/intel/i40*"
    "net/intel/iav*"
    "net/intel/ic*"
  ];
in
(dpdk.override {
  inherit machine;
  shared = !static;
}).overrideAttrs
  (old: {
    mesonFlags = old.mesonFlags ++ [
      (lib.mesonOption "enable_drivers" (lib.concatStringsSep "," drivers))
      (lib.mesonOption "enable_apps" "dumpcap,proc-info,test-pmd")
    ];
  })
