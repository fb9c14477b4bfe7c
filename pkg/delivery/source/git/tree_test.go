package git

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func TestFilesOfACommitAreAFileSystem(t *testing.T) {
	r := newTestRepository(t)
	r.link("../shared/base.yaml", "link.yaml")
	r.link("app", "again")
	r.Commit("all", map[string]string{"app/web.yaml": "web", "app/deep/er/db.yaml": "db", "shared/base.yaml": "base", "empty.yaml": ""})
	r.Git("mv", "link.yaml", "app/link.yaml")
	r.Commit("moved", nil)
	checkout, err := read(t, newTestClient(t, Policy{Files: everywhere}, Limits{}), Request{URL: r.FileURL()})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(checkout.FS(), "app/web.yaml", "app/deep/er/db.yaml", "app/link.yaml", "shared/base.yaml", "empty.yaml"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"app/link.yaml": "base", "again/web.yaml": "web", "again/link.yaml": "base"} {
		if content, err := fs.ReadFile(checkout.FS(), name); err != nil || string(content) != want {
			t.Errorf("%s holds %q (%v), want %q", name, content, err, want)
		}
	}
}

func TestWhatCannotBeReadOfACommitIsSaidOfTheFile(t *testing.T) {
	r := newTestRepository(t)
	for name, target := range map[string]string{
		"passwd": "/etc/passwd", "above": "../../etc/passwd", "inside-out": "app/../../x", "loop": "loop", "ping": "pong", "pong": "ping", "nowhere": "missing", "self": ".",
	} {
		r.link(target, name)
	}
	hash := r.Commit("first", map[string]string{
		"app/web.yaml": "web",
		"video.bin":    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
		"large.yaml":   strings.Repeat("x", 2000),
	})
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+hash+",theme")
	r.Git("commit", "--quiet", "--message", "with a submodule")
	checkout, err := read(t, newTestClient(t, Policy{Files: everywhere}, Limits{File: 1000}), Request{URL: r.FileURL()})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		want error
		says string
	}{
		"passwd":                  {ErrContent, "leaves the repository"},
		"above":                   {ErrContent, "leaves the repository"},
		"inside-out":              {ErrContent, "leaves the repository"},
		"loop":                    {ErrContent, "links"},
		"ping":                    {ErrContent, "links"},
		"nowhere":                 {fs.ErrNotExist, ""},
		"theme":                   {ErrContent, "submodule"},
		"theme/index.html":        {ErrContent, "submodule"},
		"video.bin":               {ErrContent, "Git LFS"},
		"large.yaml":              {ErrTooLarge, "2000 bytes"},
		"../x":                    {fs.ErrInvalid, ""},
		"/etc/passwd":             {fs.ErrInvalid, ""},
		"self/self/app/web.yaml":  {nil, ""},
		"app/web.yaml/below.yaml": {fs.ErrNotExist, ""},
	} {
		_, err := fs.ReadFile(checkout.FS(), name)
		if !errors.Is(err, test.want) || err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: error %v, want %v that says %q", name, err, test.want, test.says)
		}
	}
	seen := 0
	err = fs.WalkDir(checkout.FS(), ".", func(string, fs.DirEntry, error) error { seen++; return nil })
	if err != nil || seen > 20 {
		t.Errorf("a walk sees %d entries (%v): it goes round in circles", seen, err)
	}
}

func TestNamesThatNoFileMayHaveAreRefused(t *testing.T) {
	for name, accepted := range map[string]bool{
		"web.yaml": true, `dev-disk\x2d.mount`: true, "caf\xe9.yaml": true, "..": false, ".": false, "a/b": false, "../x": false,
	} {
		r := newTestRepository(t)
		content := r.GitReading("x", "hash-object", "-w", "--stdin")
		bytes, err := hex.DecodeString(content)
		if err != nil {
			t.Fatal(err)
		}
		tree := r.GitReading("100644 "+name+"\x00"+string(bytes), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
		r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "made by hand", tree))
		checkout, err := read(t, newTestClient(t, Policy{Files: everywhere}, Limits{}), Request{URL: r.FileURL()})
		if accepted != (err == nil) {
			t.Errorf("%q: error %v, want one: %v", name, err, !accepted)
			continue
		}
		if err == nil && utf8.ValidString(name) {
			if got, err := fs.ReadFile(checkout.FS(), name); err != nil || string(got) != "x" {
				t.Errorf("%q holds %q (%v)", name, got, err)
			}
		}
	}
}
