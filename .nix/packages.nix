# Everything that is built, for one nixpkgs. "all" has each package by its name in the flake: ndpip, libndpip and dpdk, each
# also for another CPU (ndpip-haswell) and with DPDK linked in (ndpip-static, ndpip-haswell-static).
{ pkgs }:

let
  inherit (pkgs) lib;

  # CPU targets as gcc's -march names them, with the level that Go knows. The first is nixpkgs' own choice for DPDK, and v1 is
  # Go's own.
  baseline = "nehalem";
  machines = {
    nehalem = "v1";
    ivybridge = "v2"; # the paper's hosts: Xeon E5-2670 v2
    haswell = "v3";
    znver2 = "v3";
    skylake-avx512 = "v4";
  };

  # The version is that of ndpip.pc; a test holds the two together.
  version = "0.1.0";

  # What the programs are made of. A change of a document or of this folder does not build them again.
  source = builtins.path {
    name = "ndpip-source";
    path = ../.;
    filter =
      path: _:
      let
        top = lib.head (lib.splitString "/" (lib.removePrefix "${toString ../.}/" path));
      in
      lib.elem top [
        "go.mod"
        "go.sum"
        "dpdk"
        "stack"
        "tcp"
        "udp"
        "ring"
        "api"
        "cmd"
      ];
  };

  tree = builtins.path {
    name = "ndpip-tree";
    path = ../.;
  };

  # Flags that DPDK's pkg-config gives, and that the go command takes only when it is told.
  allow = {
    CGO_CFLAGS_ALLOW = "-mrtm";
    CGO_LDFLAGS_ALLOW = "-Wl,--(no-)?whole-archive";
  };

  # A folder of cmd is a program, but for these.
  programs = lib.filter (name: name != "internal" && name != "libndpip") (
    lib.attrNames (builtins.readDir ../cmd)
  );

  build =
    machine: static:
    let
      dpdk = pkgs.callPackage ./dpdk.nix { inherit machine static; };
      suffix = lib.optionalString (machine != baseline) "-${machine}" + lib.optionalString static "-static";

      # What is the same for all that Go builds.
      common = {
        inherit version;
        src = source;
        vendorHash = lib.fileContents ./vendor-hash;
        tags = lib.optional static "static";
        nativeBuildInputs = [ pkgs.pkg-config ];
        # What DPDK was built with is what its pkg-config files ask for.
        buildInputs = [ dpdk ] ++ dpdk.buildInputs;
        env = allow // {
          GOAMD64 = machines.${machine};
        };
        passthru = { inherit dpdk allow; };
        doCheck = false; # the check "tests" does
        meta = {
          description = "TCP and UDP stack in user space, on DPDK";
          platforms = [ "x86_64-linux" ];
        };
      };
    in
    {
      "dpdk${suffix}" = dpdk;

      "ndpip${suffix}" = pkgs.buildGoModule (
        common
        // {
          pname = "ndpip${suffix}";
          subPackages = map (name: "cmd/${name}") programs;
          # The developers' tool is of use without the tree for one thing: to look at a machine.
          postInstall = "mv $out/bin/dev $out/bin/ndpip-doctor";
          meta = common.meta // {
            mainProgram = "ndpip-perf";
          };
        }
      );

      # Built and laid out by the project's own installer.
      "libndpip${suffix}" = pkgs.buildGoModule (
        common
        // {
          pname = "libndpip${suffix}";
          propagatedBuildInputs = [ dpdk ]; # ndpip.pc requires libdpdk.pc
          buildPhase = ''
            runHook preBuild
            go run ./cmd/dev install --prefix "$out" ${lib.optionalString static "--tags static"}
            runHook postBuild
          '';
          installPhase = ''
            runHook preInstall
            runHook postInstall
          '';
        }
      );

      # The tests that need no privilege: those of an ordinary user on a machine without hugepages and without a network.
      "tests${suffix}" = pkgs.buildGoModule (
        common
        // {
          pname = "ndpip-tests${suffix}";
          src = tree;
          env = common.env // {
            NDPIP_DPDK_TEST_NOHUGE = "1";
          };
          buildPhase = ''
            runHook preBuild
            runHook postBuild
          '';
          doCheck = true;
          checkPhase = ''
            runHook preCheck
            export HOME=$TMPDIR GOFLAGS="''${GOFLAGS//-trimpath/}"
            go test -short -count=1 -p=1 ${lib.optionalString static "-tags static"} ./...
            runHook postCheck
          '';
          installPhase = ''
            runHook preInstall
            touch $out
            runHook postInstall
          '';
        }
      );
    };

  built = lib.mergeAttrsList (
    lib.concatMap (machine: [
      (build machine false)
      (build machine true)
    ]) (lib.attrNames machines)
  );
in
{
  inherit (built) ndpip libndpip tests;

  all = lib.filterAttrs (name: _: !lib.hasPrefix "tests" name) built;

  deploy = pkgs.writeShellApplication {
    name = "ndpip-deploy";
    meta.description = "copies ndpip's programs to two hosts, checks these, and runs the experiments";
    # nix and ssh are the user's own, with the user's configuration. Go draws the plots.
    runtimeInputs = [
      built.ndpip
      pkgs.go
    ];
    text = ''
      exec ndpip-deploy --programs ${built.ndpip} --tree ${tree} "$@"
    '';
  };
}
