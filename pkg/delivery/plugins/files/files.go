// Package files walks the files of a commit as plugins get them. What is listed and cannot be read, such as a submodule or a link that leaves the
// repository, is left out and named.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
)

// ErrTooLarge is wrapped by errors about more files, or larger ones, than plugins get.
var ErrTooLarge = errors.New("too large for plugins")

// Bounds of what plugins get.
const (
	mostFiles = 50_000
	mostBytes = 512 << 20
	// mostLinks bounds how many links to folders lie in one another: such a link may lead to a folder that it is in.
	mostLinks = 3
	// mostLeft bounds the names of files that are left out.
	mostLeft = 20
)

// File is one that can be read.
type File struct {
	// Path is from the root of the tree.
	Path       string
	Executable bool
	Content    []byte
}

// Walk visits the files of a tree by their paths, in order, for which wanted holds, and returns why some are left out. Links to folders are followed.
func Walk(tree fs.FS, wanted func(name string) bool, visit func(File) error) (left []string, err error) {
	w := &walk{tree: tree, wanted: wanted, visit: visit}
	err = w.folder(".", 0)
	return w.left, err
}

type walk struct {
	tree   fs.FS
	wanted func(name string) bool
	visit  func(File) error
	left   []string
	files  int
	bytes  int64
}

func (w *walk) folder(name string, links int) error {
	entries, err := fs.ReadDir(w.tree, name)
	if err != nil {
		return fmt.Errorf("list folder %q: %w", name, err)
	}
	for _, entry := range entries {
		if err := w.entry(path.Join(name, entry.Name()), entry, links); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(name string, entry fs.DirEntry, links int) error {
	if entry.IsDir() {
		return w.folder(name, links)
	}
	if entry.Type()&fs.ModeSymlink != 0 { // to a folder: one to a file is shown as that
		info, err := fs.Stat(w.tree, name)
		switch {
		case err != nil:
			return w.leave(name, err)
		case info.IsDir() && links >= mostLinks:
			return fmt.Errorf("%w: %q is a link to a folder in a link to a folder, and so on, more than %d times", ErrTooLarge, name, mostLinks)
		case info.IsDir():
			return w.folder(name, links+1)
		}
	}
	if w.files++; w.files > mostFiles {
		return fmt.Errorf("%w: there are more than %d files", ErrTooLarge, mostFiles)
	}
	if !w.wanted(name) {
		return nil
	}
	return w.file(name)
}

func (w *walk) file(name string) error {
	file, err := w.tree.Open(name)
	if err != nil {
		return w.leave(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return w.leave(name, err)
	}
	content, err := io.ReadAll(io.LimitReader(file, mostBytes-w.bytes+1))
	if err != nil {
		return w.leave(name, err)
	}
	if w.bytes += int64(len(content)); w.bytes > mostBytes {
		return fmt.Errorf("%w: the files have more than %d MiB", ErrTooLarge, mostBytes>>20)
	}
	return w.visit(File{Path: name, Executable: info.Mode().Perm()&0o111 != 0, Content: content})
}

// leave notes that a file is left out. It is not known whether anybody needs it.
func (w *walk) leave(name string, why error) error {
	if len(w.left) < mostLeft {
		w.left = append(w.left, fmt.Sprintf("%s: %v", name, why))
	}
	return nil
}

// Hash is that of the files of a tree for which wanted holds: by their paths, contents, and whether they can be run.
func Hash(tree fs.FS, wanted func(name string) bool) (hash string, left []string, err error) {
	sum, any := sha256.New(), false
	left, err = Walk(tree, wanted, func(file File) error {
		any = true
		content := sha256.Sum256(file.Content)
		// Paths contain no zero, and what follows has a fixed length.
		_, err := sum.Write([]byte(file.Path + "\x00" + strconv.FormatBool(file.Executable)[:1] + string(content[:])))
		return err
	})
	if err == nil && !any {
		err = fmt.Errorf("%w: there are no files", fs.ErrNotExist)
	}
	return hex.EncodeToString(sum.Sum(nil)), left, err
}

// Copy writes the files of a tree below a folder that nobody else writes to yet.
func Copy(tree fs.FS, into Folder) (left []string, err error) {
	made := map[string]bool{".": true}
	return Walk(tree, func(string) bool { return true }, func(file File) error {
		if folder := path.Dir(file.Path); !made[folder] {
			made[folder] = true
			if err := into.MkdirAll(folder, 0o700); err != nil {
				return err
			}
		}
		mode := fs.FileMode(0o600)
		if file.Executable {
			mode = 0o700
		}
		return into.WriteFile(file.Path, file.Content, mode)
	})
}

// Folder is where files are written to, as an os.Root is.
type Folder interface {
	MkdirAll(name string, mode fs.FileMode) error
	WriteFile(name string, content []byte, mode fs.FileMode) error
}
