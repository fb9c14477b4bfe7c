package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// graph has for every name those that it imports.
type graph map[string]map[string]bool

func (g graph) add(from string, to ...string) {
	if g[from] == nil {
		g[from] = map[string]bool{}
	}
	for _, name := range to {
		g[from][name] = true
	}
}

// implied reports whether an arrow follows from others.
func (g graph) implied(from, to string) bool {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for next := range g[queue[0]] {
			if queue[0] == from && next == to || seen[next] {
				continue
			}
			if next == to {
				return true
			}
			seen[next] = true
			queue = append(queue, next)
		}
	}
	return false
}

// groupOf is the folder that a package is drawn with: pkg/x for what is below that, and the first folder for everything else.
func groupOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	if parts[0] == "pkg" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// rooms groups packages. A package that imports its own group by way of another one is a room of its own, like a controller in a folder below the
// pure package that it uses: drawn as one, the two groups would seem to import each other.
func (g graph) rooms() graph {
	room := map[string]string{}
	for pkg := range g {
		if room[pkg] = groupOf(pkg); g.returns(pkg) {
			room[pkg] = pkg
		}
	}
	out := graph{}
	for pkg, imports := range g {
		out.add(room[pkg])
		for imported := range imports {
			if to := room[imported]; to != "" && to != room[pkg] {
				out.add(room[pkg], to)
			}
		}
	}
	return out
}

// returns reports whether a package imports something of its group by way of another group.
func (g graph) returns(pkg string) bool {
	group := groupOf(pkg)
	type step struct {
		at      string
		outside bool // on the way here, the group was left
	}
	seen := map[step]bool{}
	for queue := []step{{at: pkg}}; len(queue) > 0; queue = queue[1:] {
		for next := range g[queue[0].at] {
			own := groupOf(next) == group
			if own && queue[0].outside {
				return true
			}
			if to := (step{next, !own}); !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return false
}

// reduced leaves out each arrow that others imply: who imports a room that imports another one reaches that as well. Where arrows run in a
// circle, the first by name are left out.
func (g graph) reduced() graph {
	out := graph{}
	for from, imports := range g {
		out.add(from, slices.Collect(maps.Keys(imports))...)
	}
	for _, from := range slices.Sorted(maps.Keys(g)) {
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			if out.implied(from, to) {
				delete(out[from], to)
			}
		}
	}
	return out
}

// mermaid is the graph as a fenced block of Mermaid, from top to bottom.
func (g graph) mermaid() string {
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(g)) {
		fmt.Fprintf(&out, "    %s[%q]\n", identifier(from), from)
	}
	for _, from := range slices.Sorted(maps.Keys(g)) {
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			fmt.Fprintf(&out, "    %s --> %s\n", identifier(from), identifier(to))
		}
	}
	out.WriteString("```\n")
	return out.String()
}

// identifier is a name in the form that Mermaid takes.
func identifier(name string) string { return strings.NewReplacer("/", "_", "-", "_").Replace(name) }
