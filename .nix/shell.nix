# What "nix develop" gives: all that building, testing, measuring and plotting takes, and what cmd/dev installs elsewhere.
{
  mkShell,
  ndpip,
  # Go
  delve,
  go-tools,
  gopls,
  # what the tests use
  curl,
  ethtool,
  iproute2,
  iputils,
  netcat-openbsd,
  shellcheck,
  socat,
  wget,
  wrk,
  # to look closer
  gdb,
  nixfmt-tree,
  tcpdump,
}:

mkShell {
  inputsFrom = [ ndpip ]; # Go, the compiler, pkg-config, DPDK and what DPDK needs
  packages = [
    delve
    go-tools
    gopls
    curl
    ethtool
    iproute2
    iputils
    netcat-openbsd
    shellcheck
    socat
    wget
    wrk
    gdb
    nixfmt-tree
    tcpdump
  ];
  env = ndpip.allow;
}
