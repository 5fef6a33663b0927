{
  description = "Keep one list of approved project folders, and give it to every MCP client and server";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      # Nixpkgs lacks some dependencies, or has other versions. So, as in the Debian package, these are
      # the wheels that requirements/lock.txt pins by hash, with the interpreter of nixpkgs.
      pinned = builtins.fromJSON (builtins.readFile ./packaging/pinned_files.json);
      interpreter = "python${builtins.replaceStrings [ "." ] [ "" ] pinned.python}";

      versionLines = builtins.filter (line: builtins.isList line) (map (builtins.match "__version__ = \"(.*)\"")
        (builtins.filter builtins.isString (builtins.split "\n" (builtins.readFile ./daemon/rootsd/__init__.py))));
      version = builtins.head (builtins.head versionLines);

      package = system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          python = pkgs.${interpreter};
          # pip reads the name and the version from the file name, and the store adds a prefix to it.
          link = folder: file:
            "ln -s ${pkgs.fetchurl { inherit (file) url sha256; }} ${folder}/${baseNameOf file.url}\n";
          links = folder: files: pkgs.lib.concatMapStrings (link folder) files;
        in
        pkgs.stdenv.mkDerivation {
          pname = "rootsd";
          inherit version;
          src = self;

          nativeBuildInputs = [ python python.pkgs.pip ]
            ++ pkgs.lib.optional pkgs.stdenv.hostPlatform.isLinux pkgs.autoPatchelfHook;
          buildInputs = pkgs.lib.optionals pkgs.stdenv.hostPlatform.isLinux [ pkgs.stdenv.cc.cc.lib pkgs.zlib ];
          # The wheels are already stripped, and contain the libraries that they are linked to.
          dontStrip = true;

          buildPhase = ''
            runHook preBuild
            export HOME=$TMPDIR PIP_DISABLE_PIP_VERSION_CHECK=1
            mkdir -p $TMPDIR/build $TMPDIR/run $TMPDIR/own
            ${links "$TMPDIR/build" pinned.wheels.${system}.build}
            ${links "$TMPDIR/run" pinned.wheels.${system}.run}
            python -m venv --without-pip $TMPDIR/builder
            python -m pip --python $TMPDIR/builder/bin/python install --quiet --no-index --no-deps $TMPDIR/build/*.whl
            $TMPDIR/builder/bin/python -m hatchling build --target wheel --directory $TMPDIR/own
            runHook postBuild
          '';

          installPhase = ''
            runHook preInstall
            python -m venv --without-pip $out/lib/rootsd
            python -m pip --python $out/lib/rootsd/bin/python install --quiet --no-index --no-deps \
              $TMPDIR/run/*.whl $TMPDIR/own/rootsd-*.whl
            mkdir -p $out/bin
            ln -s $out/lib/rootsd/bin/rootsd $out/bin/rootsd
            mv $out/lib/rootsd/share $out/share
            runHook postInstall
          '';

          doInstallCheck = true;
          installCheckPhase = ''
            $out/bin/rootsd version | grep -F ${version}
          '';

          meta = {
            description = "Keep one list of approved project folders, and give it to every MCP client and server";
            homepage = "https://github.com/rootsd/rootsd";
            license = pkgs.lib.licenses.mit;
            mainProgram = "rootsd";
            platforms = builtins.attrNames pinned.wheels;
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: _: { default = package system; }) pinned.wheels;
    };
}
