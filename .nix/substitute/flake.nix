{
  description = "what ndpip's flake uses of nixpkgs, over the tools of this machine; see README.md";

  outputs =
    { self }:
    let
      system = "x86_64-linux";
      lib = import ./lib.nix;
      pkgs = lib.extensible (import ./packages.nix { inherit lib system; });
    in
    {
      inherit lib;
      legacyPackages.${system} = pkgs;
    };
}
