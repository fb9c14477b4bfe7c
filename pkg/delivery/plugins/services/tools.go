package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// mostScript bounds the script that installs a tool, in bytes.
const mostScript = 64 << 10

// installWithin is how long a script has to install a tool.
const installWithin = 5 * time.Minute

// errLate is why a script is ended that takes longer.
var errLate = fmt.Errorf("it has not installed the tool within %s", installWithin)

// Tools say where programs are that plugins run, such as kubectl.
type Tools struct {
	// Dir is the folder of those that an admin has put there, as NAME-VERSION. It may be "".
	Dir string
	// Install runs the scripts by which plugins install tools. It may be nil, and then none are run.
	Install Installer
}

// Installer runs scripts of plugins. They come from the plugin, so whoever runs them does so as the plugin itself: as its user and within its limits.
type Installer interface {
	// May reports whether an admin lets a plugin install tools.
	May(plugin string) bool
	// Folder is that of a plugin for its tools, which is its own. It need not be there.
	Folder(plugin string) string
	// Installed reports whether an executable of a name is in the folder.
	Installed(plugin, file string) bool
	// Run runs a script with /bin/sh, and returns what it has written last if it fails. The script ends with ctx.
	Run(ctx context.Context, plugin, script string) error
}

// plain is what the name and version of a tool may be. They become a part of a path.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// InstallTool returns where a tool is, which was installed if it was not there yet.
func (s *service) InstallTool(ctx context.Context, request *pipedservice.InstallToolRequest) (*pipedservice.InstallToolResponse, error) {
	name, version := request.GetName(), request.GetVersion()
	for field, value := range map[string]string{"name": name, "version": version} {
		if !plain.MatchString(value) {
			return nil, status.Errorf(codes.InvalidArgument, "%s: %q is not one that a tool can have", field, value[:min(len(value), mostName)])
		}
	}
	file := name + "-" + version
	placed := filepath.Join(s.Tools.Dir, file)
	if s.Tools.Dir != "" && executable(placed) {
		return &pipedservice.InstallToolResponse{InstalledPath: placed}, nil
	}
	if s.Tools.Install == nil || !s.Tools.Install.May(s.plugin) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not there, and plugin %q may not install it: an admin sets spec.installTools of the Plugin, or puts the executable at %s",
			file, s.plugin, placed)
	}
	path, err := s.install(ctx, name, version, file, request.GetInstallScript())
	if err != nil {
		return nil, err
	}
	return &pipedservice.InstallToolResponse{InstalledPath: path}, nil
}

// install has the script put a tool into the plugin's own folder: what it installs nobody else runs. A plugin installs one tool at a time, and who asks meanwhile for the
// same one finds it there.
func (s *service) install(ctx context.Context, name, version, file, script string) (string, error) {
	installer := s.Tools.Install
	dir := installer.Folder(s.plugin)
	// No name of a tool begins with a dot.
	path, temporary := filepath.Join(dir, file), filepath.Join(dir, ".tmp-"+file)
	out := temporary + ".out"
	filled, err := fill(script, map[string]string{"Name": name, "Version": version, "OutPath": out, "TmpDir": temporary, "Arch": runtime.GOARCH, "Os": runtime.GOOS})
	if err != nil {
		return "", err
	}
	select {
	case s.installing <- struct{}{}:
		defer func() { <-s.installing }()
	case <-ctx.Done():
		return "", status.FromContextError(ctx.Err()).Err()
	}
	if installer.Installed(s.plugin, file) {
		return path, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, installWithin, errLate)
	defer cancel()
	if err := installer.Run(ctx, s.plugin, whole(filled, path, temporary, out)); err != nil {
		return "", status.Errorf(codes.FailedPrecondition, "install %s: %s", file, delivery.Said(err.Error()))
	}
	if !installer.Installed(s.plugin, file) {
		return "", status.Errorf(codes.FailedPrecondition, "install %s: the script has put no executable at {{ .OutPath }}", file)
	}
	return path, nil
}

// whole is a script that leaves a whole tool or none: it gets its name when what is to put it there has ended. All of it is done by the plugin's user, who could do it anyway.
func whole(script, path, temporary, out string) string {
	return fmt.Sprintf(`tmp=%s out=%s path=%s
rm -rf "$tmp" "$out" && mkdir -p "$tmp" || exit 1
(
cd "$tmp" || exit 1
%s
)
code=$?
[ "$code" != 0 ] || { chmod 0755 "$out" && mv "$out" "$path"; } || code=1
rm -rf "$tmp" "$out"
exit "$code"
`, quoted(temporary), quoted(out), quoted(path), script)
}

// quoted is a text as one word of a shell.
func quoted(said string) string { return "'" + strings.ReplaceAll(said, "'", `'\''`) + "'" }

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

var variable = regexp.MustCompile(`\{\{-?\s*\.([A-Za-z]+)\s*-?\}\}`)

// fill puts values in the place of variables. It is no template of Go, though it looks like one: that would run a program of a stranger in this process.
func fill(script string, values map[string]string) (string, error) {
	if script == "" || len(script) > mostScript {
		return "", status.Errorf(codes.InvalidArgument, "install_script: it has to have from 1 to %d bytes", mostScript)
	}
	unknown := ""
	out := variable.ReplaceAllStringFunc(script, func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		value, known := values[name]
		if !known {
			unknown = found
		}
		return value
	})
	if i := strings.Index(out, "{{"); unknown == "" && i >= 0 {
		unknown = out[i:min(len(out), i+mostName)]
	}
	if unknown != "" {
		return "", status.Errorf(codes.InvalidArgument, "install_script: %q is none of the variables Name, Version, OutPath, TmpDir, Arch and Os", unknown)
	}
	return out, nil
}
