package plugins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAdminSaysWhichUsersPluginsHave(t *testing.T) {
	for said, want := range map[string][2]uint32{"59000-59999": {59000, 59999}, "1000-1000": {1000, 1000}, "4294967294-4294967294": {4294967294, 4294967294}} {
		p := Options{UIDs: said}
		if err := p.Validate(); err != nil || p.first != want[0] || p.last != want[1] {
			t.Errorf("%s: users %d-%d, %v", said, p.first, p.last, err)
		}
	}
	for _, said := range []string{"", "59000", "59000-", "-59000", "59999-59000", "0-10", "999-2000", "a-b", "59000-4294967295", "59000-99999999999", "59000-59001-59002"} {
		if err := (&Options{UIDs: said}).Validate(); err == nil || !strings.Contains(err.Error(), "--plugins-uid-range") {
			t.Errorf("%q: error %v, want one that names the flag", said, err)
		}
	}
}

func TestTheFolderOfPluginsIsOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "plugins")
	_, lock, err := openDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDir(path, false); err == nil || !strings.Contains(err.Error(), "in use by another manifold") {
		t.Errorf("error %v, want that it is in use", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	_, lock, err = openDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

// Otherwise their programs could not be run, nor reach their own folders.
func TestUsersOfPluginsPassThroughTheFoldersAbove(t *testing.T) {
	closed, err := os.MkdirTemp("", "server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(closed) })
	path := filepath.Join(closed, "plugins")
	if _, _, err := openDir(path, true); err == nil || !strings.Contains(err.Error(), "cannot pass through "+closed) {
		t.Errorf("error %v, want one that names the folder", err)
	}
	if err := os.Chmod(closed, 0o711); err != nil {
		t.Fatal(err)
	}
	_, lock, err := openDir(path, true)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

// Who can exchange the folder has the server run what he likes: checksums are compared a moment before.
func TestAFolderThatOthersCanExchangeIsRefused(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	if err := os.Mkdir(above, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(above, "plugins")
	if err := os.Chmod(above, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDir(path, false); err == nil || !strings.Contains(err.Error(), "everybody may write to "+above) {
		t.Errorf("error %v, want one that names the folder above", err)
	}
	if err := os.Chmod(above, 0o777|os.ModeSticky); err != nil { // as /tmp is
		t.Fatal(err)
	}
	_, lock, err := openDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if os.Geteuid() != 0 {
		return // nobody else can give a folder away
	}
	if err := os.Chown(path, 59000, 59000); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openDir(path, false); err == nil || !strings.Contains(err.Error(), path+" belongs to user 59000") {
		t.Errorf("error %v, want one that names the owner", err)
	}
}
