package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

func TestEveryModuleIsListedWithItsSum(t *testing.T) {
	list, err := listOf(&debug.BuildInfo{
		GoVersion: "go1.26.1",
		Main:      debug.Module{Path: "example.com/main", Version: "v1.0.0"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3", Sum: "h1:AQI="},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:/w=="}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []component{
		{Type: "library", Name: "std", Version: "1.26.1", PURL: "pkg:golang/std@1.26.1"},
		{Type: "library", Name: "example.com/a", Version: "v1.2.3", PURL: "pkg:golang/example.com/a@v1.2.3", Hashes: []hash{{"SHA-256", "0102"}}},
		{Type: "library", Name: "example.com/fork", Version: "v1.0.1", PURL: "pkg:golang/example.com/fork@v1.0.1", Hashes: []hash{{"SHA-256", "ff"}}},
	}
	if !reflect.DeepEqual(list.Components, want) {
		t.Errorf("got %+v, want %+v", list.Components, want)
	}
	if got := list.Metadata.Component; got.Type != "application" || got.Name != "example.com/main" {
		t.Errorf("it is about %+v", got)
	}
	if _, err := listOf(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/a", Sum: "h1:?"}}}); err == nil || !strings.Contains(err.Error(), "example.com/a") {
		t.Errorf("a damaged sum: %v", err)
	}
}

func TestABinaryTellsWhatItIsBuiltFrom(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{binary}, &out); err != nil {
		t.Fatal(err)
	}
	var list bom
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || list.Format != "CycloneDX" || len(list.Components) == 0 {
		t.Errorf("it says %s, %v", &out, err)
	}
	for name, args := range map[string][]string{"of nothing": nil, "of what is no binary": {"main.go"}} {
		if err := run(args, &out); err == nil {
			t.Errorf("a list %s was made", name)
		}
	}
}
