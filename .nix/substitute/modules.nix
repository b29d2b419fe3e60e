# Modules as NixOS has them, without what ndpip's module does not use. What is there is strict: an option that does not
# exist, a value of another type and two values where one can be are errors, as they are there.
let
  inherit (builtins)
    all
    attrNames
    concatLists
    concatMap
    concatStringsSep
    filter
    foldl'
    functionArgs
    head
    isAttrs
    isBool
    isFunction
    isInt
    isList
    isString
    length
    mapAttrs
    match
    toJSON
    ;

  dotted = concatStringsSep ".";
  fail = path: text: throw "The option `${dotted path}': ${text}";
  kind = value: if isAttrs value then value._type or "" else "";
  unique = foldl' (seen: name: if builtins.elem name seen then seen else seen ++ [ name ]) [ ];

  usual = 100;
  mkOverride = priority: content: {
    _type = "override";
    inherit priority content;
  };
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };

  # The values of a definition, with conditions decided.
  values =
    definition:
    if kind definition == "if" then
      if definition.condition then values definition.content else [ ]
    else if kind definition == "override" then
      map (v: v // { inherit (definition) priority; }) (values definition.content)
    else
      [
        {
          priority = usual;
          value = definition;
        }
      ];

  # The same for a set of options: conditions go down to the options without being looked at, since they may depend on some.
  sets =
    path: definition:
    if kind definition == "if" then
      map (mapAttrs (_: mkIf definition.condition)) (sets path definition.content)
    else if kind definition == "override" then
      map (mapAttrs (_: mkOverride definition.priority)) (sets path definition.content)
    else if isAttrs definition then
      [ definition ]
    else
      fail path "want a set of options, have ${toJSON definition}";

  # The value of an option of a type, from all its definitions.
  valueOf =
    path: type: definitions:
    let
      all' = concatMap values definitions;
      best = foldl' (least: v: if v.priority < least then v.priority else least) 1000000 all';
      used = map (v: v.value) (filter (v: v.priority == best) all');
    in
    if used == [ ] then fail path "it has no value" else type.merge path used;

  # A module is a file, a function, or a set, with imports.
  load =
    args: module:
    let
      read = if isAttrs module || isFunction module then module else import module;
      got = if isFunction read then read args else read;
      known = [
        "imports"
        "options"
        "config"
      ];
      whole = got ? options || got ? config;
      odd = filter (name: !builtins.elem name known) (attrNames got);
    in
    if whole && odd != [ ] then
      throw "a module with options or config has also ${concatStringsSep ", " odd}"
    else
      [
        {
          options = got.options or { };
          config = if whole then got.config or { } else removeAttrs got [ "imports" ];
        }
      ]
      ++ concatMap (load args) (got.imports or [ ]);

  declare =
    path: left: right:
    left
    // mapAttrs (
      name: option:
      if !(left ? ${name}) then
        option
      else if kind option == "option" || kind left.${name} == "option" then
        fail (path ++ [ name ]) "declared twice"
      else
        declare (path ++ [ name ]) left.${name} option
    ) right;

  evaluate =
    path: options: definitions:
    if kind options == "option" then
      if concatMap values definitions == [ ] && options ? default then
        options.type.merge path [ options.default ]
      else
        valueOf path options.type definitions
    else
      let
        given = concatMap (sets path) definitions;
        odd = filter (name: !(options ? ${name})) (concatMap attrNames given);
      in
      if odd != [ ] then
        fail (path ++ [ (head odd) ]) "it does not exist"
      else
        mapAttrs (
          name: option:
          evaluate (path ++ [ name ]) option (
            concatMap (set: if set ? ${name} then [ set.${name} ] else [ ]) given
          )
        ) options;

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? [ ],
    }:
    let
      args = specialArgs // {
        inherit config;
        lib = import ./lib.nix;
      };
      loaded = concatMap (load args) modules;
      options = foldl' (declare prefix) { } (map (m: m.options) loaded);
      config = evaluate prefix options (map (m: m.config) loaded);
    in
    {
      inherit config options;
    };

  # A type of which a value is checked, and of which there can be one.
  plain = description: check: {
    inherit description;
    merge =
      path: used:
      let
        bad = filter (v: !check v) used;
      in
      if bad != [ ] then
        fail path "want ${description}, have ${toJSON (head bad)}"
      else if all (v: v == head used) used then
        head used
      else
        fail path "it has conflicting values: ${toJSON used}";
  };

  types = rec {
    bool = plain "true or false" isBool;
    int = plain "an integer" isInt;
    str = plain "a string" isString;
    ints.positive = plain "a positive integer" (v: isInt v && v > 0);
    ints.unsigned = plain "an integer that is not negative" (v: isInt v && v >= 0);
    enum = values: plain "one of ${toJSON values}" (v: builtins.elem v values);
    strMatching = regex: plain "a string that matches ${regex}" (v: isString v && match regex v != null);
    package = plain "a package" (v: isAttrs v && v.type or "" == "derivation") // {
      # The same package may come twice; two are compared by what they build.
      merge =
        path: used:
        if all (v: isAttrs v && v.type or "" == "derivation") used then
          head used
        else
          fail path "want a package";
    };
    lines = str // {
      merge = path: used: concatStringsSep "\n" (map (v: str.merge path [ v ]) used);
    };
    nullOr = type: {
      description = "null or ${type.description}";
      merge = path: used: if all isNull used then null else type.merge path used;
    };
    either = left: right: {
      description = "${left.description} or ${right.description}";
      merge =
        path: used:
        (if (builtins.tryEval (builtins.deepSeq (left.merge path used) true)).success then left else right).merge path used;
    };
    listOf = type: {
      description = "a list";
      merge =
        path: used:
        if all isList used then
          map (v: valueOf path type [ v ]) (concatLists used)
        else
          fail path "want a list of ${type.description}";
    };
    nonEmptyListOf = type: {
      description = "a list that is not empty";
      merge =
        path: used:
        let
          value = (listOf type).merge path used;
        in
        if value == [ ] then fail path "want at least one of ${type.description}" else value;
    };
    attrsOf = type: {
      description = "a set";
      merge =
        path: used:
        let
          given = concatMap (sets path) used;
          names = unique (concatMap attrNames given);
          of = name: concatMap (set: if set ? ${name} then [ set.${name} ] else [ ]) given;
          set = filter (name: concatMap values (of name) != [ ]) names;
        in
        builtins.listToAttrs (
          map (name: {
            inherit name;
            value = valueOf (path ++ [ name ]) type (of name);
          }) set
        );
    };
    submodule = module: {
      description = "a set of options";
      merge =
        path: used:
        (evalModules {
          prefix = path;
          modules = [ module ] ++ map (config: { inherit config; }) used;
        }).config;
    };
  };
in
{
  inherit evalModules mkIf types;
  mkDefault = mkOverride 1000;
  mkOption =
    {
      type,
      ...
    }@option:
    let
      odd = filter (
        name:
        !builtins.elem name [
          "type"
          "default"
          "defaultText"
          "description"
          "example"
        ]
      ) (attrNames option);
    in
    if odd != [ ] then
      throw "mkOption does not take ${concatStringsSep ", " odd}"
    else
      option // { _type = "option"; };
  mkEnableOption = what: {
    _type = "option";
    type = types.bool;
    default = false;
    description = "Whether to enable ${what}.";
  };
}
