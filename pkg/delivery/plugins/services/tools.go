package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// mostScript bounds the script that installs a tool, in bytes.
const mostScript = 64 << 10

// Tools say where programs are that plugins run, such as kubectl.
type Tools struct {
	// Dir is the folder of those that an admin has put there, as NAME-VERSION. It may be "".
	Dir string
	// Install runs the script by which a plugin installs a tool, if an admin allows that. It is nil otherwise.
	Install Installer
}

// Installer runs scripts of plugins. They come from the plugin, so whoever runs them does so as the plugin itself: as its user and within its limits.
type Installer interface {
	// Folder returns a folder of a plugin for its tools, which is its own.
	Folder(plugin string) (string, error)
	// Run runs a script with /bin/sh in a folder for temporary files, and returns what it has written last if it fails.
	Run(ctx context.Context, plugin, dir, script string) error
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
	if s.Tools.Install == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not there, and plugins may not install anything: put the executable at %s", file, filepath.Join(s.Tools.Dir, file))
	}
	path, err := s.install(ctx, name, version, file, request.GetInstallScript())
	if err != nil {
		return nil, err
	}
	return &pipedservice.InstallToolResponse{InstalledPath: path}, nil
}

// install has the script put a tool into the plugin's own folder: what it installs nobody else runs.
func (s *service) install(ctx context.Context, name, version, file, script string) (string, error) {
	dir, err := s.Tools.Install.Folder(s.plugin)
	if err != nil {
		return "", status.Error(codes.Unavailable, delivery.Said(err.Error()))
	}
	path, temporary := filepath.Join(dir, file), filepath.Join(dir, "tmp-"+file)
	if executable(path) {
		return path, nil
	}
	out := temporary + ".out"
	filled, err := fill(script, map[string]string{"Name": name, "Version": version, "OutPath": out, "TmpDir": temporary, "Arch": runtime.GOARCH, "Os": runtime.GOOS})
	if err != nil {
		return "", err
	}
	// What is there is whole: the tool gets its name when the script has ended. All of it is done by the plugin's user, who could do it anyway.
	whole := fmt.Sprintf("rm -rf '%[1]s' '%[2]s' && mkdir -p '%[1]s' || exit 1\n(\ncd '%[1]s' || exit 1\n%[3]s\n) || exit $?\nchmod 0755 '%[2]s' && mv '%[2]s' '%[4]s' && rm -rf '%[1]s'\n",
		temporary, out, filled, path)
	if err := s.Tools.Install.Run(ctx, s.plugin, dir, whole); err != nil {
		return "", status.Errorf(codes.FailedPrecondition, "install %s: %s", file, delivery.Said(err.Error()))
	}
	if !executable(path) {
		return "", status.Errorf(codes.FailedPrecondition, "install %s: the script has put nothing at {{ .OutPath }}", file)
	}
	return path, nil
}

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
