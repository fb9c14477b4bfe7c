package api

import (
	"debug/buildinfo"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// A program that can load Go plugins keeps the name of every symbol, and kubectl brings along what loads them.
func TestTheBinaryIsLinkedWithoutGoPlugins(t *testing.T) {
	root, err := tools.Root()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(root, "bin", "manifold"))
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, setting := range info.Settings {
		if setting.Key == "-tags" {
			tags = strings.Split(setting.Value, ",")
		}
	}
	if !slices.Contains(tags, "kustomize_disable_go_plugin_support") {
		t.Errorf("bin/manifold is built with tags %q", tags)
	}
}
