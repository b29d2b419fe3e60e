# The options of NixOS that ndpip's module and the test of two machines set, with the types that they have there.
{ lib, ... }:

let
  inherit (lib) mkOption types;
  list =
    type:
    mkOption {
      type = types.listOf type;
      default = [ ];
    };
  set =
    options:
    mkOption {
      type = types.attrsOf (types.submodule { inherit options; });
      default = { };
    };
  optional =
    type:
    mkOption {
      type = types.nullOr type;
      default = null;
    };
  text = mkOption {
    type = types.lines;
    default = "";
  };
  flag = mkOption {
    type = types.bool;
    default = false;
  };
  required = type: mkOption { inherit type; };
  word = types.either types.str types.int;
in
{
  options = {
    boot = {
      kernelParams = list types.str;
      kernelModules = list types.str;
      extraModprobeConfig = text;
    };
    powerManagement.cpuFreqGovernor = optional types.str;

    users.users = set {
      isSystemUser = flag;
      isNormalUser = flag;
      group = required types.str;
    };
    users.groups = set { gid = optional types.int; };
    security.pam.loginLimits = list (
      types.submodule {
        options = {
          domain = required types.str;
          type = required (
            types.enum [
              "-"
              "hard"
              "soft"
            ]
          );
          item = required (
            types.enum [
              "core"
              "memlock"
              "nofile"
              "nproc"
              "rtprio"
            ]
          );
          value = required word;
        };
      }
    );

    services.udev.extraRules = text;
    environment.systemPackages = list types.package;
    environment.etc = set { text = optional types.lines; };

    systemd.services = set {
      description = mkOption {
        type = types.str;
        default = "";
      };
      wantedBy = list types.str;
      requires = list types.str;
      after = list types.str;
      script = text;
      preStop = text;
      serviceConfig = mkOption {
        type = types.attrsOf (types.either types.bool (types.either word (types.listOf types.str)));
        default = { };
      };
    };

    virtualisation = {
      cores = required types.ints.positive;
      memorySize = required types.ints.positive;
      vlans = list types.ints.unsigned;
      qemu.options = list types.str;
    };
  };
}
