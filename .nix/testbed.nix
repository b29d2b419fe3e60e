# A NixOS host of the testbed: one network card for ndpip, hugepages and CPUs of its own, and the perf programs as services.
#
# docs/testbed.md goes through it. What a host says of itself here it also writes to /etc/ndpip/host.toml, which ndpip-exp reads.
{ config, lib, ... }:

let
  inherit (lib)
    mkEnableOption
    mkIf
    mkOption
    optional
    optionals
    types
    ;
  cfg = config.ndpip;
  cpus = lib.concatMapStringsSep "," toString cfg.cpus;
  iommu = cfg.iommu != "none";
  device = "/sys/bus/pci/devices/${cfg.device}";

  quote = builtins.toJSON; # a TOML string, too

  # A program of ndpip-perf's as a service that is started by hand, or by who measures.
  perf =
    verb: options: extra:
    {
      description = "ndpip-perf ${verb}";
      requires = [ "ndpip-bind.service" ];
      after = [ "ndpip-bind.service" ];
      serviceConfig = {
        ExecStart = lib.escapeShellArgs (
          [
            "${cfg.package}/bin/ndpip-perf"
            verb
            "--wire"
            "pci:${cfg.device}"
            "--bind-ip"
            cfg.address
            "--checksum"
            cfg.checksum
            "--cpu"
            (toString (lib.head cfg.cpus))
          ]
          ++ (
            if lib.length cfg.cpus > 1 then
              [
                "--worker-cpu"
                (toString (lib.elemAt cfg.cpus 1))
              ]
            else
              [ "--inline" ]
          )
          ++ lib.concatLists (
            lib.mapAttrsToList (ip: mac: [
              "--arp"
              "${ip}=${mac}"
            ]) cfg.neighbours
          )
          ++ options
          ++ extra
        );
        CPUAffinity = lib.concatMapStringsSep " " toString cfg.cpus;
        LimitMEMLOCK = "infinity";
        KillSignal = "SIGINT";
        # Without an IOMMU a device reaches all of the memory by physical addresses, which only root may know.
        User = mkIf iommu cfg.user;
        Group = mkIf iommu cfg.user;
        AmbientCapabilities = mkIf iommu [ "CAP_IPC_LOCK" ];
      };
    };
in
{
  options.ndpip = {
    enable = mkEnableOption "this host as an end of ndpip's testbed";

    package = mkOption {
      type = types.package;
      description = "The programs.";
    };

    device = mkOption {
      type = types.strMatching "[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]";
      example = "0000:3b:00.0";
      description = "PCI address of the card's port that ndpip drives; the kernel loses it. `ndpip-doctor` lists the cards.";
    };

    driver = mkOption {
      type = types.str;
      default = "vfio-pci";
      description = "The kernel's driver that hands the device to DPDK.";
    };

    iommu = mkOption {
      type = types.enum [
        "intel"
        "amd"
        "none"
      ];
      default = "intel";
      description = ''
        Whose IOMMU keeps the device to the memory that it is given. With `none`, vfio-pci runs without one: the programs
        must then be root's, and a fault in the device or its driver can overwrite any memory.
      '';
    };

    hugepages = {
      size = mkOption {
        type = types.enum [
          "2M"
          "1G"
        ];
        default = "1G";
        description = "Size of a hugepage.";
      };
      count = mkOption {
        type = types.ints.positive;
        default = 4;
        description = "How many are set aside when the host starts.";
      };
    };

    cpus = mkOption {
      type = types.nonEmptyListOf types.ints.unsigned;
      example = [
        2
        3
      ];
      description = ''
        The CPUs of the application and of the worker, on which the kernel runs nothing else; one alone: without a worker.
        They should be cores of their own (no siblings in hyper-threading) on the card's NUMA node.
      '';
    };

    address = mkOption {
      type = types.str;
      example = "10.0.0.1/24";
      description = "ndpip's own IPv4 address, with the length of the prefix.";
    };

    mac = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "00:0a:f7:00:00:01";
      description = "The port's Ethernet address, for the other host, which then need not ask for it.";
    };

    neighbours = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        "10.0.0.2" = "00:0a:f7:00:00:02";
      };
      description = "Ethernet addresses that need not be asked for, by IP address.";
    };

    checksum = mkOption {
      type = types.enum [
        "auto"
        "software"
        "off"
      ];
      default = "auto";
      description = "Who computes checksums; `auto` is the card where it can.";
    };

    user = mkOption {
      type = types.str;
      default = "ndpip";
      description = "The user and the group that may use the device, where there is an IOMMU.";
    };

    receiver = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "--zero-copy" ];
      description = "Further options of the service `ndpip-recv`.";
    };

    sender = {
      to = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "10.0.0.1";
        description = "The receiver's address; with it there is a service `ndpip-send`.";
      };
      options = mkOption {
        type = types.listOf types.str;
        default = [ ];
        example = [
          "--mss"
          "1460"
        ];
        description = "Further options of the service `ndpip-send`.";
      };
    };
  };

  config = mkIf cfg.enable {
    boot.kernelParams = [
      "default_hugepagesz=${cfg.hugepages.size}"
      "hugepagesz=${cfg.hugepages.size}"
      "hugepages=${toString cfg.hugepages.count}"
      "isolcpus=${cpus}"
      "nohz_full=${cpus}"
      "rcu_nocbs=${cpus}"
    ]
    ++ optionals iommu [
      "${cfg.iommu}_iommu=on"
      "iommu=pt"
    ];
    boot.kernelModules = [ cfg.driver ];
    boot.extraModprobeConfig = lib.optionalString (!iommu) "options vfio enable_unsafe_noiommu_mode=1\n";
    powerManagement.cpuFreqGovernor = lib.mkDefault "performance";

    users.users.${cfg.user} = {
      isSystemUser = true;
      group = cfg.user;
    };
    users.groups.${cfg.user} = { };
    # A device that is DMA's needs its memory locked, for who logs in as for the services.
    security.pam.loginLimits = [
      {
        domain = "@${cfg.user}";
        type = "-";
        item = "memlock";
        value = "unlimited";
      }
    ];
    services.udev.extraRules = ''
      SUBSYSTEM=="vfio", GROUP="${cfg.user}", MODE="0660"
    '';

    environment.systemPackages = [ cfg.package ];
    environment.etc."ndpip/host.toml".text = lib.concatStringsSep "\n" (
      [
        "address = ${quote cfg.address}"
        "pci = ${quote cfg.device}"
        "driver = ${quote cfg.driver}"
        "lcores = [${lib.concatMapStringsSep ", " toString cfg.cpus}]"
        "checksum = ${quote cfg.checksum}"
        "programs = ${quote "${cfg.package}/bin"}"
      ]
      ++ optional (cfg.mac != null) "mac = ${quote cfg.mac}"
      ++ [ "" ]
    );

    systemd.services = {
      # What "driverctl set-override" does, and the way back.
      ndpip-bind = {
        description = "hand ${cfg.device} to ${cfg.driver}";
        wantedBy = [ "multi-user.target" ];
        after = [ "systemd-modules-load.service" ];
        serviceConfig = {
          Type = "oneshot";
          RemainAfterExit = true;
        };
        script = ''
          echo ${lib.escapeShellArg cfg.driver} > ${device}/driver_override
          if [ -e ${device}/driver ]; then
            echo ${cfg.device} > ${device}/driver/unbind
          fi
          echo ${cfg.device} > /sys/bus/pci/drivers_probe
          [ "$(basename "$(readlink ${device}/driver)")" = ${lib.escapeShellArg cfg.driver} ]
        '';
        preStop = ''
          echo > ${device}/driver_override
          echo ${cfg.device} > ${device}/driver/unbind
          echo ${cfg.device} > /sys/bus/pci/drivers_probe
        '';
      };
      ndpip-recv = perf "recv" [ ] cfg.receiver;
      ndpip-send = mkIf (cfg.sender.to != null) (
        perf "send" [
          "--connect-ip"
          cfg.sender.to
        ] cfg.sender.options
      );
    };
  };
}
