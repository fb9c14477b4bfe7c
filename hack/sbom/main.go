// Command sbom lists the modules that a binary of Go is built from, as CycloneDX in JSON: the ones that the linker has noted in it, which may be
// fewer than go.mod requires. It needs nothing but the binary, and the same binary gives the same list.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: sbom BINARY")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read what %s is built from: %w", args[0], err)
	}
	list, err := listOf(info)
	if err != nil {
		return fmt.Errorf("list what %s is built from: %w", args[0], err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// listOf lists the standard library, and the modules in the order in which the linker has noted them, by path.
func listOf(info *debug.BuildInfo) (bom, error) {
	list := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	main, err := componentOf("application", info.Main)
	if err != nil {
		return bom{}, err
	}
	list.Metadata.Component = main
	std, err := componentOf("library", debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	if err != nil {
		return bom{}, err
	}
	list.Components = append(list.Components, std)
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c, err := componentOf("library", *module)
		if err != nil {
			return bom{}, err
		}
		list.Components = append(list.Components, c)
	}
	return list, nil
}

func componentOf(kind string, module debug.Module) (component, error) {
	c := component{Type: kind, Name: module.Path, Version: module.Version, PURL: "pkg:golang/" + module.Path + "@" + module.Version}
	if module.Sum == "" {
		return c, nil // what is built here
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil {
		return component{}, fmt.Errorf("the sum of %s: %w", module.Path, err)
	}
	c.Hashes = []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum)}}
	return c, nil
}
