package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// pins is what a go.mod says a program is to be built from.
type pins struct {
	// dir is the folder of the go.mod.
	dir string
	// modules holds the version of every module, as replaced.
	modules map[string]string
	// released is when the pinned Kubernetes was, which its programs report as their build date: they are then the same on every machine.
	// It is zero where none is pinned.
	released time.Time
	// goVersion is the toolchain that builds.
	goVersion string
	// sources is a hash of the files in dir and in its folders.
	sources string
}

// modFile is the part of "go mod edit -json" that matters here.
type modFile struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// readPins reads a go.mod, or a file that stands for one.
func readPins(ctx context.Context, path string) (*pins, error) {
	var file modFile
	dir := filepath.Dir(path)
	raw, err := goCommand(ctx, dir, "mod", "edit", "-json", filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parse the output of go mod edit: %w", err)
	}
	p := &pins{dir: dir, modules: map[string]string{}}
	for _, r := range file.Require {
		p.modules[r.Path] = r.Version
	}
	for _, r := range file.Replace {
		p.modules[r.Old.Path] = r.New.Version
	}
	if p.version(kubernetesModule) != "" {
		if p.released, err = releaseTime(ctx, dir, kubernetesModule); err != nil {
			return nil, err
		}
	}
	raw, err = goCommand(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	p.goVersion = strings.TrimSpace(string(raw))
	if p.sources, err = hashFiles(dir); err != nil {
		return nil, err
	}
	return p, nil
}

func releaseTime(ctx context.Context, dir, module string) (time.Time, error) {
	raw, err := goCommand(ctx, dir, "list", "-m", "-f", "{{.Time.Format \"2006-01-02T15:04:05Z07:00\"}}", module)
	if err != nil {
		return time.Time{}, err
	}
	released, err := time.Parse(time.RFC3339, strings.TrimSpace(string(raw)))
	if err != nil {
		return time.Time{}, fmt.Errorf("parse the release time of %s: %w", module, err)
	}
	return released, nil
}

// hashFiles returns a hash of the names and contents of the files in the folder and in its folders, but for those that are modules of their own.
func hashFiles(dir string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir:
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir
			}
		case entry.Type().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			fmt.Fprintf(hash, "%s %d\n%s", name, len(raw), raw)
			return err
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return out, nil
}

func (p *pins) version(module string) string {
	return p.modules[module]
}

// tags are those that a program is built with. Go does not note in ours which sources they were built from, and where paths are trimmed not by
// which flags a program was linked, so both get a hash of that as a tag that no file asks for.
func (p *pins) tags(prog program) string {
	var tags []string
	if prog.tags != "" {
		tags = append(tags, prog.tags)
	}
	if prog.ours {
		tags = append(tags, "sources_"+p.sources)
	}
	if flags := p.ldflags(prog); flags != "" {
		hash := sha256.Sum256([]byte(flags))
		tags = append(tags, "flags_"+hex.EncodeToString(hash[:8]))
	}
	return strings.Join(tags, ",")
}

// ldflags makes a program report the version it is: Kubernetes' programs carry none in their sources. Go does not note in a test
// program which modules it was built from, so that gets a hash of the files that say so, in a variable that need not exist.
func (p *pins) ldflags(prog program) string {
	if prog.module != kubernetesModule {
		return ""
	}
	version := p.version(kubernetesModule)
	major, minor := majorMinor(version)
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range [][2]string{
			{"gitVersion", version},
			{"gitMajor", major},
			{"gitMinor", minor},
			{"gitCommit", version},
			{"gitTreeState", "archive"},
			{"buildDate", p.released.UTC().Format(time.RFC3339)},
		} {
			flags = append(flags, fmt.Sprintf("-X %s.%s=%s", pkg, v[0], v[1]))
		}
	}
	if prog.test {
		flags = append(flags, fmt.Sprintf("-X %s.builtFrom=%s", prog.pkg, p.sources))
	}
	return strings.Join(flags, " ")
}

func majorMinor(version string) (major, minor string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(rest, ".")
	return major, minor
}

// stale says why the file is not the program as pinned, or nothing if it is.
func (p *pins) stale(prog program, file string) string {
	info, err := buildinfo.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "not built yet"
	case err != nil:
		return fmt.Sprintf("not readable as a Go program: %v", err)
	}
	return p.differs(prog, info)
}

// differs says in what the build differs from the pinned one, or nothing if it does not.
func (p *pins) differs(prog program, info *debug.BuildInfo) string {
	want := prog.pkg
	if prog.test {
		want += ".test"
	}
	if info.Path != want {
		return fmt.Sprintf("built from %s instead of %s", info.Path, want)
	}
	if info.GoVersion != p.goVersion {
		return fmt.Sprintf("built with %s, the toolchain is %s", info.GoVersion, p.goVersion)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if want := p.tags(prog); settings["-tags"] != want {
		return fmt.Sprintf("built with tags %q instead of %q", settings["-tags"], want)
	}
	if got := settings["GOOS"] + "/" + settings["GOARCH"]; got != runtime.GOOS+"/"+runtime.GOARCH {
		return "built for " + got
	}
	if prog.test {
		return "" // its tags tell
	}
	modules := info.Deps
	if !prog.ours {
		modules = append([]*debug.Module{&info.Main}, modules...)
	}
	for _, m := range modules {
		got := m.Version
		if m.Replace != nil {
			got = m.Replace.Version
		}
		if want := p.version(m.Path); got != want {
			return fmt.Sprintf("built with %s %s, pinned is %s", m.Path, got, want)
		}
	}
	return ""
}
