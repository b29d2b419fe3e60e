# The functions of nixpkgs' lib that ndpip's flake calls, and three that the substitute alone needs (at the end).
let
  inherit (builtins)
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    head
    isList
    length
    listToAttrs
    match
    readFile
    replaceStrings
    stringLength
    substring
    ;
in
rec {
  inherit
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    head
    length
    ;

  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: values: if condition then values else [ ];
  optionalString = condition: text: if condition then text else "";

  concatMapStringsSep =
    separator: f: list:
    concatStringsSep separator (map f list);
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  removePrefix =
    prefix: text:
    if hasPrefix prefix text then substring (stringLength prefix) (stringLength text) text else text;
  splitString =
    separator: text: filter (part: !isList part) (builtins.split (escapeRegex separator) text);
  fileContents = file: head (match "(.*[^\n])\n*" (readFile file));
  escapeShellArg =
    arg:
    let
      text = toString arg;
    in
    if match "[[:alnum:],._+:@%/-]+" text != null then
      text
    else
      "'${replaceStrings [ "'" ] [ "'\\''" ] text}'";
  escapeShellArgs = concatMapStringsSep " " escapeShellArg;

  filterAttrs =
    keep: set:
    removeAttrs set (filter (name: !keep name set.${name}) (attrNames set));
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  mergeAttrsList = foldl' (all: one: all // one) { };

  # As in nixpkgs, an option of meson's is one word of its command line.
  mesonOption = name: value: "-D${name}=${value}";
  getExe =
    package:
    "${package}/bin/${package.meta.mainProgram or (throw "getExe: ${package.name} has no meta.mainProgram")}";

  inherit (import ./modules.nix) # options and modules
    evalModules
    mkDefault
    mkEnableOption
    mkIf
    mkOption
    types
    ;

  # Not of nixpkgs' lib.

  escapeRegex = replaceStrings [ "." "+" "*" ] [ "\\." "\\+" "\\*" ];

  # A set of packages that overlays extend.
  extensible =
    layer:
    let
      self = layer self // {
        extend = overlay: extensible (final: layer final // overlay final (layer final));
      };
    in
    self;

  # callPackage for packages: arguments come from the set by their names, and override changes them.
  callPackageWith =
    set: f: args:
    let
      function = if builtins.isFunction f then f else import f;
      wanted = builtins.functionArgs function;
      known = listToAttrs (
        concatMap (
          name:
          optional (set ? ${name}) {
            inherit name;
            value = set.${name};
          }
        ) (attrNames wanted)
      );
      missing = filter (name: !wanted.${name} && !(set ? ${name}) && !(args ? ${name})) (attrNames wanted);
      result = function (known // args);
    in
    if missing != [ ] then
      throw "callPackage: the substitute has no ${concatStringsSep ", " missing}"
    else if builtins.isAttrs result then
      result // { override = more: callPackageWith set f (args // more); }
    else
      result;
}
