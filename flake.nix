{
  description = "ndpip: a TCP and UDP stack in user space, on DPDK, in Go";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";

  outputs =
    { self, nixpkgs }:
    let
      system = "x86_64-linux"; # the one that the stack is tested on
      pkgs = nixpkgs.legacyPackages.${system}.extend self.overlays.default;
      inherit (pkgs) lib;
      inherit (pkgs.ndpipPackages) ndpip deploy;

      app = program: description: {
        type = "app";
        inherit program;
        meta = { inherit description; };
      };
    in
    {
      overlays.default = final: _: {
        ndpipPackages = import ./.nix/packages.nix { pkgs = final; };
        inherit (final.ndpipPackages) ndpip libndpip;
      };

      nixosModules.testbed = {
        imports = [ ./.nix/testbed.nix ];
        ndpip.package = lib.mkDefault ndpip;
      };
      nixosModules.default = self.nixosModules.testbed;

      packages.${system} = pkgs.ndpipPackages.all // {
        inherit deploy;
        default = ndpip;
      };

      apps.${system} = {
        default = self.apps.${system}.ndpip-perf;
        ndpip-perf = app "${ndpip}/bin/ndpip-perf" "measure and move data";
        ndpip-cat = app "${ndpip}/bin/ndpip-cat" "netcat over ndpip";
        ndpip-doctor = app "${ndpip}/bin/ndpip-doctor" "what this machine lacks for full speed";
        deploy = app (lib.getExe deploy) "copy the programs to two hosts, check these, run the experiments";
      };

      devShells.${system}.default = pkgs.callPackage ./.nix/shell.nix { };

      checks.${system} = {
        inherit (pkgs.ndpipPackages) ndpip libndpip tests;
        vm = pkgs.callPackage ./.nix/vm.nix { inherit (self.nixosModules) testbed; };
      };

      formatter.${system} = pkgs.nixfmt-tree;
    };
}
