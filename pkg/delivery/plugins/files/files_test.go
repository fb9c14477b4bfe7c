package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func everything(string) bool { return true }

func hashOf(t *testing.T, tree fs.FS, wanted func(string) bool) string {
	t.Helper()
	hash, _, err := Hash(tree, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestTheHashOfFilesChangesWithWhatPluginsGet(t *testing.T) {
	tree := func(change func(fstest.MapFS)) fstest.MapFS {
		out := fstest.MapFS{"web/main.tf": {Data: []byte("a")}, "web/run.sh": {Data: []byte("b"), Mode: 0o755}, "docs/index.md": {Data: []byte("c")}}
		if change != nil {
			change(out)
		}
		return out
	}
	below := func(name string) bool { return strings.HasPrefix(name, "web/") }
	want := hashOf(t, tree(nil), below)
	for name, test := range map[string]struct {
		change func(fstest.MapFS)
		same   bool
	}{
		"a content":   {change: func(f fstest.MapFS) { f["web/main.tf"].Data = []byte("b") }},
		"a mode":      {change: func(f fstest.MapFS) { f["web/run.sh"].Mode = 0o644 }},
		"a name":      {change: func(f fstest.MapFS) { f["web/other.tf"] = f["web/main.tf"]; delete(f, "web/main.tf") }},
		"a file more": {change: func(f fstest.MapFS) { f["web/new"] = &fstest.MapFile{} }},
		"contents that trade places": {change: func(f fstest.MapFS) {
			f["web/main.tf"].Data, f["web/run.sh"].Data = f["web/run.sh"].Data, f["web/main.tf"].Data
		}},
		"a file elsewhere":              {change: func(f fstest.MapFS) { f["docs/index.md"].Data = []byte("d") }, same: true},
		"the same files, written again": {same: true},
	} {
		if got := hashOf(t, tree(test.change), below); (got == want) != test.same {
			t.Errorf("%s: the same hash: %t, want %t", name, got == want, test.same)
		}
	}
	if _, _, err := Hash(tree(nil), func(string) bool { return false }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without files: %v", err)
	}
}

// linked is a tree with a link to a folder, as git's has them: a link when it is listed, and a folder when it is opened.
type linked struct{ fstest.MapFS }

func (l linked) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(l.MapFS, l.real(name))
	if l.real(name) == "web" {
		entries = append(entries, fs.FileInfoToDirEntry(link{}))
	}
	return entries, err
}

func (l linked) Open(name string) (fs.File, error) { return l.MapFS.Open(l.real(name)) }

func (l linked) Stat(name string) (fs.FileInfo, error) { return fs.Stat(l.MapFS, l.real(name)) }

// real leads the link web/self back to web.
func (l linked) real(name string) string { return strings.ReplaceAll(name, "/self", "") }

type link struct{ fs.FileInfo }

func (link) Name() string      { return "self" }
func (link) Mode() fs.FileMode { return fs.ModeSymlink | 0o444 }
func (link) IsDir() bool       { return false }

func TestALinkThatLeadsBackEnds(t *testing.T) {
	_, _, err := Hash(linked{fstest.MapFS{"web/main.tf": {}}}, everything)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `"web/self/self`) {
		t.Errorf("error %v", err)
	}
}

// broken is a tree in which one file cannot be opened.
type broken struct{ fstest.MapFS }

func (b broken) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "broken") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a link that leaves the repository")}
	}
	return b.MapFS.Open(name)
}

func TestWhatCannotBeReadIsLeftOutAndNamed(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	left, err := Copy(broken{fstest.MapFS{"a/b/broken": {}, "a/b/fine": {Data: []byte("x")}, "a/run": {Mode: 0o755}}}, root)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || !strings.HasPrefix(left[0], "a/b/broken: ") {
		t.Errorf("left out: %q", left)
	}
	var got []string
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		info, _ := entry.Info()
		got = append(got, fmt.Sprintf("%s %o", name, info.Mode().Perm()))
		return err
	})
	if want := []string{"a 700", "a/b 700", "a/b/fine 600", "a/run 700"}; !slices.Equal(got[1:], want) {
		t.Errorf("there are %q, want %q", got[1:], want)
	}
}

func TestFilesAreBounded(t *testing.T) {
	many := fstest.MapFS{}
	for i := range mostFiles + 1 {
		many[fmt.Sprint(i)] = &fstest.MapFile{}
	}
	if _, _, err := Hash(many, everything); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many files: %v", err)
	}
}
