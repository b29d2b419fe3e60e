# The packages of nixpkgs that ndpip's flake uses, with the same interfaces, made of what this machine has. They look
# outside of the store for the tools, Go's caches and DPDK, so they build with --impure and without a sandbox.
{ lib, system }:
final:

let
  env = name: default: if builtins.getEnv name == "" then default else builtins.getEnv name;
  home = env "HOME" "/root";
  hostPath = "${env "PATH" "/usr/local/bin:/usr/bin:/bin"}:/usr/local/go/bin";

  # A derivation as stdenv makes it, of the attributes that nixpkgs knows and any others, which the phases see.
  mkDerivation =
    argument:
    let
      isFunction = builtins.isFunction argument;
      attrs = if isFunction then argument result else argument;
      name = attrs.name or "${attrs.pname}-${attrs.version}";
      notForBuilder = [
        "passthru"
        "meta"
        "env"
        "outputs"
      ];
      plain = removeAttrs attrs notForBuilder;
      same = builtins.filter (key: plain ? ${key}) (builtins.attrNames (attrs.env or { }));
      drv = derivation (
        plain
        // attrs.env or { }
        // {
          inherit name system;
          builder = "/bin/bash";
          args = [ ./build.sh ];
          PATH = hostPath;
        }
      );
      result =
        drv
        // {
          inherit name;
          meta = attrs.meta or { };
          overrideAttrs =
            change:
            mkDerivation (
              final:
              let
                old = if isFunction then argument final else argument;
              in
              old // change old
            );
        }
        // attrs.passthru or { };
    in
    if same != [ ] then
      throw "${name}: ${lib.concatStringsSep ", " same} is in env and beside it"
    else if !builtins.isString name then
      throw "mkDerivation wants pname and version, or name"
    else
      result;

  # A package whose programs are this machine's, as far as it has them.
  host =
    name: programs:
    mkDerivation {
      inherit name programs;
      installPhase = ''
        mkdir -p "$out/bin"
        for program in $programs; do
          if path=$(PATH=${hostPath} command -v "$program"); then ln -s "$path" "$out/bin/"; fi
        done
      '';
    };

  goEnvironment = {
    GOCACHE = env "GOCACHE" "${env "XDG_CACHE_HOME" "${home}/.cache"}/go-build";
    GOMODCACHE = env "GOMODCACHE" "${env "GOPATH" "${home}/go"}/pkg/mod";
    GO111MODULE = "on";
    GOTOOLCHAIN = "local";
  };

  # Like nixpkgs', it builds in two steps: the modules, whose hash Nix checks, and the package with these in vendor. Go's
  # caches are this machine's, so that nothing is fetched or compiled twice.
  buildGoModule =
    {
      pname,
      version,
      src,
      vendorHash,
      nativeBuildInputs ? [ ],
      subPackages ? [ ],
      tags ? [ ],
      ldflags ? [ ],
      GOFLAGS ? [ ],
      env ? { },
      passthru ? { },
      ...
    }@args:
    let
      goModules = mkDerivation {
        name = "${pname}-${version}-go-modules";
        inherit src;
        nativeBuildInputs = nativeBuildInputs ++ [ final.go ];
        env = env // goEnvironment;
        buildPhase = "go mod vendor";
        installPhase = ''cp -r vendor "$out"'';
        outputHashMode = "recursive";
        outputHash = vendorHash;
        outputHashAlgo = null;
        GOPROXY = builtins.getEnv "GOPROXY";
      };
    in
    mkDerivation (
      {
        buildPhase = ''
          runHook preBuild
          for package in ''${subPackages:-./...}; do
            go install ''${tags:+-tags=''${tags// /,}} ''${ldflags:+-ldflags="$ldflags"} "./''${package#./}"
          done
          runHook postBuild
        '';
        installPhase = ''
          runHook preInstall
          mkdir -p "$out"
          if [ -e "$GOBIN" ]; then cp -r "$GOBIN" "$out/bin"; fi
          runHook postInstall
        '';
        configurePhase = ''
          runHook preConfigure
          export GOPROXY=off GOSUMDB=off GOBIN=$TMPDIR/bin
          cp -r "$goModules" vendor
          runHook postConfigure
        '';
      }
      // removeAttrs args [ "vendorHash" ]
      // {
        inherit goModules subPackages tags;
        nativeBuildInputs = [ final.go ] ++ nativeBuildInputs;
        GOFLAGS = GOFLAGS ++ [ "-mod=vendor" ]; # and no -trimpath: with it, all of Go's library would be compiled anew
        ldflags = ldflags ++ [ "-buildid=" ];
        env = env // goEnvironment;
        passthru = passthru // {
          inherit goModules;
          inherit (final) go;
        };
      }
    );

  # Debian's DPDK under the name of nixpkgs' package: pkg-config files for it, with the CPU that is asked for.
  dpdk =
    {
      machine ? "nehalem",
      shared ? false,
      withExamples ? [ ],
    }:
    mkDerivation {
      pname = "dpdk";
      version = "0"; # whatever Debian has
      inherit machine;
      mesonFlags = [
        "-Dtests=false"
        "-Denable_docs=true"
        "-Ddeveloper_mode=disabled"
        "-Ddefault_library=${if shared then "shared" else "static"}"
        "-Dmachine=${machine}"
        "-Dexamples=${lib.concatStringsSep "," withExamples}"
      ];
      buildInputs = [ ];
      buildPhase = ''
        # The options are those of DPDK's meson_options.txt and of meson itself.
        for flag in $mesonFlags; do
          case $flag in
            -Dtests=* | -Denable_docs=* | -Ddeveloper_mode=* | -Ddefault_library=* | -Dmachine=* | -Dexamples=*) ;;
            -Denable_drivers=* | -Ddisable_drivers=* | -Denable_apps=* | -Ddisable_apps=* | -Denable_libs=* | -Dmax_lcores=*) ;;
            *) echo "dpdk: $flag is no option" >&2 && exit 1 ;;
          esac
        done
      '';
      installPhase = ''
        mkdir -p "$out/lib/pkgconfig"
        # Debian's own target is nehalem too, by another name.
        for name in libdpdk libdpdk-libs; do
          from=$(pkg-config --variable=pcfiledir libdpdk)/$name.pc
          if [ "$machine" = nehalem ]; then cp "$from" "$out/lib/pkgconfig/"; else
            sed "s/-march=[^ ]*/-march=$machine/" "$from" > "$out/lib/pkgconfig/$name.pc"
          fi
        done
      '';
    };

  callPackage = lib.callPackageWith final;
in
# Packages that are named and no more, since nothing is built with them in CI.
builtins.listToAttrs (
  map
    (name: {
      inherit name;
      value = host name [ name ];
    })
    [
      "curl"
      "delve"
      "ethtool"
      "gdb"
      "go-tools"
      "gopls"
      "iproute2"
      "iputils"
      "netcat-openbsd"
      "nixfmt-tree"
      "pkg-config"
      "shellcheck"
      "socat"
      "tcpdump"
      "wget"
      "wrk"
    ]
)
// {
  inherit lib system buildGoModule;
  callPackage = f: args: callPackage f args;
  stdenv = { inherit mkDerivation; };
  go = host "go" [
    "go"
    "gofmt"
  ];
  dpdk = callPackage dpdk { };

  writeShellApplication =
    {
      name,
      text,
      runtimeInputs ? [ ],
      meta ? { },
    }:
    mkDerivation {
      inherit name;
      script = ''
        #!/bin/bash
        set -o errexit
        set -o nounset
        set -o pipefail
        export PATH="${lib.concatMapStringsSep ":" (package: "${package}/bin") runtimeInputs}:$PATH"

        ${text}
      '';
      passAsFile = [ "script" ];
      installPhase = ''
        mkdir -p "$out/bin"
        cp "$scriptPath" "$out/bin/$name"
        chmod +x "$out/bin/$name"
        if command -v shellcheck >/dev/null; then shellcheck "$out/bin/$name"; fi
      '';
      meta = {
        mainProgram = name;
      }
      // meta;
    };

  mkShell =
    {
      inputsFrom ? [ ],
      packages ? [ ],
      env ? { },
    }:
    mkDerivation {
      name = "nix-shell";
      inherit env;
      nativeBuildInputs = packages ++ lib.concatMap (package: package.nativeBuildInputs) inputsFrom;
      buildInputs = lib.concatMap (package: package.buildInputs) inputsFrom;
      installPhase = "touch $out";
    };

  # A test of machines: their configurations are evaluated; what is built is a description of them and no machine.
  testers.runNixOSTest =
    {
      name,
      nodes,
      testScript,
    }:
    let
      configurations = builtins.mapAttrs (
        _: node:
        (lib.evalModules {
          modules = [
            ./nixos.nix
            node
          ];
          specialArgs.pkgs = final;
        }).config
      ) nodes;
    in
    mkDerivation {
      name = "vm-test-run-${name}";
      nodes = builtins.toJSON configurations;
      inherit testScript;
      passAsFile = [
        "nodes"
        "testScript"
      ];
      installPhase = ''
        mkdir "$out"
        cp "$nodesPath" "$out/nodes.json"
        cp "$testScriptPath" "$out/test.py"
      '';
      passthru.nodes = configurations;
    };
}
