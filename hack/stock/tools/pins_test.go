package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestDiffers(t *testing.T) {
	p := &pins{
		modules: map[string]string{
			"k8s.io/kubernetes": "v1.37.1",
			"k8s.io/api":        "v0.37.1",
			"sigs.k8s.io/kwok":  "v0.8.0",
		},
		released:  time.Date(2026, 9, 23, 17, 6, 22, 0, time.UTC),
		goVersion: "go1.26.8",
		sources:   "0123456789abcdef",
	}
	kubectl := program{name: Kubectl, module: kubernetesModule, pkg: "k8s.io/kubernetes/cmd/kubectl"}
	built := func(change func(*debug.BuildInfo)) *debug.BuildInfo {
		info := &debug.BuildInfo{
			GoVersion: "go1.26.8",
			Path:      "k8s.io/kubernetes/cmd/kubectl",
			Main:      debug.Module{Path: "k8s.io/kubernetes", Version: "v1.37.1"},
			Deps: []*debug.Module{
				{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.37.1"}},
			},
			Settings: []debug.BuildSetting{
				{Key: "-tags", Value: p.tags(kubectl)},
				{Key: "GOOS", Value: runtime.GOOS},
				{Key: "GOARCH", Value: runtime.GOARCH},
			},
		}
		change(info)
		return info
	}
	tests := map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a program built as pinned is kept": {
			info: built(func(*debug.BuildInfo) {}),
		},
		"another version of the program's own module": {
			info: built(func(i *debug.BuildInfo) { i.Main.Version = "v1.36.0" }),
			want: "built with k8s.io/kubernetes v1.36.0, pinned is v1.37.1",
		},
		"another version of a module that it depends on": {
			info: built(func(i *debug.BuildInfo) { i.Deps[0].Replace.Version = "v0.36.0" }),
			want: "built with k8s.io/api v0.36.0, pinned is v0.37.1",
		},
		"another toolchain": {
			info: built(func(i *debug.BuildInfo) { i.GoVersion = "go1.25.0" }),
			want: "built with go1.25.0, the toolchain is go1.26.8",
		},
		"another main package under the same name": {
			info: built(func(i *debug.BuildInfo) { i.Path = "sigs.k8s.io/kwok/cmd/kwok" }),
			want: "built from sigs.k8s.io/kwok/cmd/kwok instead of k8s.io/kubernetes/cmd/kubectl",
		},
		"other tags": {
			info: built(func(i *debug.BuildInfo) {
				i.Settings = append(i.Settings, debug.BuildSetting{Key: "-tags", Value: "race"})
			}),
			want: fmt.Sprintf("built with tags %q instead of %q", "race", p.tags(kubectl)),
		},
		"other flags": {
			info: built(func(i *debug.BuildInfo) { i.Settings[0].Value = "flags_0123456789abcdef" }),
			want: fmt.Sprintf("built with tags %q instead of %q", "flags_0123456789abcdef", p.tags(kubectl)),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := p.differs(kubectl, tt.info); got != tt.want {
				t.Errorf("differs() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestATestProgramDiffersByItsSources(t *testing.T) {
	p := &pins{modules: map[string]string{"k8s.io/kubernetes": "v1.37.1"}, goVersion: "go1.26.8", sources: "0123456789abcdef"}
	suite := program{name: E2ETest, module: kubernetesModule, pkg: "example.com/conformance", test: true}
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      "example.com/conformance.test",
		Main:      debug.Module{Path: "example.com/conformance", Version: "(devel)"},
		Settings: []debug.BuildSetting{
			{Key: "-tags", Value: p.tags(suite)},
			{Key: "GOOS", Value: runtime.GOOS},
			{Key: "GOARCH", Value: runtime.GOARCH},
		},
	}
	if got := p.differs(suite, info); got != "" {
		t.Errorf("differs() = %q, want none for what was built from the same files", got)
	}
	before := p.tags(suite)
	p.sources = "fedcba9876543210"
	if got, want := p.differs(suite, info), fmt.Sprintf("built with tags %q instead of %q", before, p.tags(suite)); got != want {
		t.Errorf("differs() = %q, want %q for what was built from other files", got, want)
	}
}

func TestAProgramOfOursDiffersByItsSources(t *testing.T) {
	p := &pins{modules: map[string]string{"example.com/sdk": "v0.4.0"}, goVersion: "go1.26.8", sources: "0123456789abcdef"}
	toy := program{name: ToyPlugin, module: "example.com/sdk", pkg: "example.com/plugins/toy", ours: true}
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      "example.com/plugins/toy",
		Main:      debug.Module{Path: "example.com/plugins", Version: "(devel)"},
		Deps:      []*debug.Module{{Path: "example.com/sdk", Version: "v0.4.0"}},
		Settings: []debug.BuildSetting{
			{Key: "-tags", Value: p.tags(toy)},
			{Key: "GOOS", Value: runtime.GOOS},
			{Key: "GOARCH", Value: runtime.GOARCH},
		},
	}
	if got := p.differs(toy, info); got != "" {
		t.Errorf("differs() = %q, want none for what was built from the same files", got)
	}
	p.sources = "fedcba9876543210"
	if got, want := p.differs(toy, info), `built with tags "sources_0123456789abcdef" instead of "sources_fedcba9876543210"`; got != want {
		t.Errorf("differs() = %q, want %q for what was built from other files", got, want)
	}
	p.sources, p.modules["example.com/sdk"] = "0123456789abcdef", "v0.1.0"
	if got, want := p.differs(toy, info), "built with example.com/sdk v0.4.0, pinned is v0.1.0"; got != want {
		t.Errorf("differs() = %q, want %q for what was built with another SDK", got, want)
	}
}

func TestTheHashOfSourcesIsThatOfAllFilesOfTheModule(t *testing.T) {
	dir := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		t.Helper()
		out, err := hashFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write("go.mod", "module example.com")
	write("toy/main.go", "package main")
	before := hash()
	write("other/go.mod", "module example.com/other")
	write("other/main.go", "package main")
	if hash() != before {
		t.Error("a module in the folder changes the hash, of which it is no part")
	}
	write("toy/main.go", "package main // changed")
	if hash() == before {
		t.Error("a file in a folder of the module does not change the hash")
	}
}
