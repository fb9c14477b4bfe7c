package git

import (
	"maps"
	"path"
	"slices"
)

// Changes are the files by which two commits differ.
type Changes struct {
	// Files are the paths of those that were added, changed or deleted, from the root of the repository, sorted.
	Files []string
	// More says that there are others, which are too many or have no name that could be shown.
	More bool
}

// mostChanged and mostNames bound what is listed of changes: how many files, and how many bytes of names.
const (
	mostChanged = 1_000
	mostNames   = 64 << 10
	longestName = 4096
)

// Since returns the files by which this commit differs from an earlier one. A file that was moved is two files: one that was deleted, and one that
// was added.
func (c *Checkout) Since(earlier *Checkout) Changes {
	d := &difference{left: mostNames}
	d.compare(".", earlier.tree.root, c.tree.root)
	slices.Sort(d.Files)
	return d.Changes
}

// difference gathers changes up to the bounds.
type difference struct {
	Changes
	left int // bytes of names
}

// add notes a file that has changed.
func (d *difference) add(name string) {
	if d.left -= len(name); d.left < 0 || len(d.Files) == mostChanged || len(name) > longestName {
		d.More = true
		return
	}
	d.Files = append(d.Files, name)
}

// compare goes through two trees side by side; either may be nil, which is where there is nothing. What has the same hash is the same, so only
// folders are opened that differ.
func (d *difference) compare(at string, before, now *node) {
	if d.More || before.same(now) {
		return
	}
	found := len(d.Files)
	for _, one := range []*node{before, now} {
		if one != nil && one.children == nil {
			d.add(at)
			break // it is one file, also where both are
		}
	}
	names := maps.Clone(before.entries())
	if names == nil {
		names = map[string]*node{}
	}
	maps.Copy(names, now.entries())
	for _, name := range slices.Sorted(maps.Keys(names)) { // so that it is the same ones that are listed of too many
		d.compare(path.Join(at, name), before.entries()[name], now.entries()[name])
	}
	if len(d.Files) == found {
		d.More = true // something differs whose name is not listed
	}
}

// same reports whether two nodes are the same file or folder with the same content.
func (n *node) same(other *node) bool {
	if n == nil || other == nil {
		return n == other
	}
	return n.hash == other.hash && n.mode == other.mode
}

// entries are what a folder holds; nothing of a file, and of nil.
func (n *node) entries() map[string]*node {
	if n == nil {
		return nil
	}
	return n.children
}
