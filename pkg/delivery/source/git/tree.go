package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// tree is the tree of a commit as an fs.FS. Names are listed at once, contents are read when they are asked for.
type tree struct {
	limits Limits
	root   *node

	mu    sync.Mutex // the store is not made for several readers
	store storer.EncodedObjectStorer
}

// node is a file, folder, link or submodule.
type node struct {
	name     string
	mode     filemode.FileMode
	hash     plumbing.Hash
	children map[string]*node
}

// list reads all names below a tree. The same tree may occur at many places, so it is the places that are counted.
func list(store storer.EncodedObjectStorer, hash plumbing.Hash, limits Limits) (*tree, error) {
	t := &tree{limits: limits, store: store, root: &node{name: ".", mode: filemode.Dir, hash: hash}}
	left := limits.Files
	return t, t.fill(t.root, ".", limits.Depth, &left)
}

func (t *tree) fill(folder *node, at string, depth int, left *int) error {
	if depth < 0 {
		return fmt.Errorf("%w: %q lies in more than %d folders", ErrTooLarge, at, t.limits.Depth)
	}
	if err := decodable(t.store, folder.hash, t.limits); err != nil {
		return fmt.Errorf("folder %q: %w", at, err)
	}
	read, err := object.GetTree(t.store, folder.hash)
	if err != nil {
		return fmt.Errorf("%w: folder %q: %w", ErrContent, at, err)
	}
	if *left -= len(read.Entries); *left < 0 {
		return fmt.Errorf("%w: over %d files and folders", ErrTooLarge, t.limits.Files)
	}
	folder.children = make(map[string]*node, len(read.Entries))
	for _, entry := range read.Entries {
		if !utf8.ValidString(entry.Name) {
			continue // nobody can ask for it: names in an fs.FS are UTF-8
		}
		if !fs.ValidPath(entry.Name) || entry.Name == "." || strings.Contains(entry.Name, "/") {
			return fmt.Errorf("%w: folder %q has an entry named %q", ErrContent, at, entry.Name)
		}
		child := &node{name: entry.Name, mode: entry.Mode, hash: entry.Hash}
		if entry.Mode == filemode.Dir {
			if err := t.fill(child, path.Join(at, entry.Name), depth-1, left); err != nil {
				return err
			}
		}
		folder.children[entry.Name] = child
	}
	return nil
}

// decodable refuses a folder, commit or tag that is too large to be decoded. A few bytes of a pack may be a list of millions of names.
func decodable(store storer.EncodedObjectStorer, hash plumbing.Hash, limits Limits) error {
	switch size, err := store.EncodedObjectSize(hash); {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return err // who asks knows what is missing
	case err != nil:
		return fmt.Errorf("%w: %w", ErrContent, err)
	case size > limits.Listing:
		return fmt.Errorf("%w: it takes %d bytes, and %d are allowed for a folder, commit or tag", ErrTooLarge, size, limits.Listing)
	}
	return nil
}

// complete checks that all files are here. All folders have been read.
func (t *tree) complete() error {
	var check func(n *node, at string) error
	check = func(n *node, at string) error {
		if n.mode != filemode.Dir && n.mode != filemode.Submodule {
			if err := t.store.HasEncodedObject(n.hash); err != nil {
				return fmt.Errorf("%w: the repository does not send %q: %w", ErrContent, at, err)
			}
		}
		for _, child := range n.children {
			if err := check(child, path.Join(at, child.name)); err != nil {
				return err
			}
		}
		return nil
	}
	return check(t.root, ".")
}

// mostLinks bounds how many links one name leads through.
const mostLinks = 16

// find returns what name leads to, through links.
func (t *tree) find(name string) (*node, error) {
	links := mostLinks
	at, rest := []*node{t.root}, strings.Split(name, "/")
	if name == "." {
		return t.root, nil
	}
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(at) == 1 {
				return nil, fmt.Errorf("%w: it is a link that leaves the repository", ErrContent)
			}
			at = at[:len(at)-1]
			continue
		}
		next, ok := at[len(at)-1].children[part]
		if !ok {
			return nil, fs.ErrNotExist
		}
		switch next.mode {
		case filemode.Submodule:
			return nil, fmt.Errorf("%w: %q is a submodule, and those are not fetched; put its files into the repository", ErrContent, part)
		case filemode.Symlink:
			target, err := t.target(next)
			if err != nil {
				return nil, err
			}
			if links--; links < 0 {
				return nil, fmt.Errorf("%w: it leads through more than %d links", ErrContent, mostLinks)
			}
			rest = append(strings.Split(target, "/"), rest...)
		default:
			at = append(at, next)
		}
	}
	return at[len(at)-1], nil
}

// mostTarget bounds where a link may point, in bytes.
const mostTarget = 4096

func (t *tree) target(link *node) (string, error) {
	content, err := t.read(link, mostTarget)
	switch {
	case err != nil:
		return "", err
	case path.IsAbs(string(content)):
		return "", fmt.Errorf("%w: it is a link that leaves the repository", ErrContent)
	}
	return string(content), nil
}

// read returns the content of a file or link of at most most bytes.
func (t *tree) read(file *node, most int64) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size, err := t.store.EncodedObjectSize(file.hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	if size > most {
		return nil, fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrTooLarge, size, most)
	}
	blob, err := object.GetBlob(t.store, file.hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	content, err := io.ReadAll(io.LimitReader(reader, most))
	return content, errors.Join(err, reader.Close())
}

// lfs begins a file whose content Git LFS keeps elsewhere.
var lfs = []byte("version https://git-lfs.github.com/spec/")

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	info, err := t.stat("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &folder{info: info, entries: t.entries(name, info.node)}, nil
	}
	content, err := t.read(info.node, t.limits.File)
	if err == nil && bytes.HasPrefix(content, lfs) {
		err = fmt.Errorf("%w: its content is kept by Git LFS, and is not fetched; put the file itself into the repository", ErrContent)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{Reader: bytes.NewReader(content), info: info}, nil
}

// Stat implements fs.StatFS.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	info, err := t.stat("stat", name)
	if err != nil {
		return nil, err
	}
	return info, nil
}

func (t *tree) stat(op, name string) (info, error) {
	if !fs.ValidPath(name) {
		return info{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	found, err := t.find(name)
	if err != nil {
		return info{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return t.describe(path.Base(name), found), nil
}

// describe returns what is known of a node under a name, which a link may have given it.
func (t *tree) describe(name string, n *node) info {
	out := info{name: name, node: n}
	if !out.IsDir() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if size, err := t.store.EncodedObjectSize(n.hash); err == nil {
			out.size = size
		}
	}
	return out
}

// entries lists a folder by name. A link to a file is shown as that file.
func (t *tree) entries(at string, folder *node) []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(folder.children))
	for _, child := range folder.children {
		shown := child
		if child.mode == filemode.Symlink {
			if found, err := t.find(path.Join(at, child.name)); err == nil && found.mode != filemode.Dir {
				shown = found
			}
		}
		out = append(out, entry{t.describe(child.name, shown)})
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

type entry struct{ info }

func (e entry) Info() (fs.FileInfo, error) { return e.info, nil }
func (e entry) Type() fs.FileMode          { return e.info.Mode().Type() }

// info implements fs.FileInfo.
type info struct {
	name string
	node *node
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.node.mode == filemode.Dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	switch i.node.mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Submodule:
		return fs.ModeIrregular
	case filemode.Executable:
		return 0o555
	default:
		return 0o444
	}
}

type file struct {
	*bytes.Reader
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// folder implements fs.ReadDirFile.
type folder struct {
	info    info
	entries []fs.DirEntry
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *folder) Close() error               { return nil }
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("it is a folder")}
}

func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := f.entries
		f.entries = nil
		return out, nil
	}
	if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	out := f.entries[:n]
	f.entries = f.entries[n:]
	return out, nil
}
