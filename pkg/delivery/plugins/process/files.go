package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// WriteFiles writes files into the folder of a program, which is made if need be, readable by its user alone. Files that have the content already stay as they are. The
// folder is the program's own, so a link may lie where a file is to be: it is replaced, and not followed.
func WriteFiles(home string, user *User, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	folder, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer folder.Close()
	for name, content := range files {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("%q is no name of a file", name)
		}
		if err := writeFile(folder, name, content, user); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// RemoveFiles removes files of the folder of a program. Those that are not there are none.
func RemoveFiles(home string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	folder, err := os.OpenRoot(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, name := range names {
		if err := folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

func writeFile(folder *os.Root, name, content string, user *User) error {
	if info, err := folder.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(content)) {
		if has, err := folder.ReadFile(name); err == nil && string(has) == content {
			return nil
		}
	}
	next := "." + name + "-" + strconv.Itoa(os.Getpid())
	if err := folder.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := folder.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if user != nil {
		if err := out.Chown(int(user.ID), int(user.ID)); err != nil {
			return err
		}
	}
	if _, err := out.WriteString(content); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return folder.Rename(next, name)
}
