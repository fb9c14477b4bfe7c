package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platform is a folder, as a deploy target configures it.
type platform struct {
	Folder string `json:"folder"`
	// Instances is how many each application has.
	Instances int `json:"instances"`
}

// commitFile says which revision an instance has.
const commitFile = ".commit"

// instance is what runs of an application in one place.
type instance struct {
	commit string
	since  time.Time
	// files are its contents by their paths. Nil means that it does not run.
	files map[string]string
}

func (p platform) count() int {
	return max(p.Instances, 1)
}

func (p platform) path(app string, i int) string {
	return filepath.Join(p.Folder, url.PathEscape(app), strconv.Itoa(i))
}

// fill gives the first instances of an application the files of a source. One that has them is left alone, and one that has not never has some.
func (p platform) fill(app string, instances int, from source) error {
	files, err := read(from.ApplicationDirectory, from.ApplicationConfigFilename)
	if err != nil {
		return err
	}
	there, err := p.instances(app)
	if err != nil {
		return err
	}
	for i := range instances {
		if there[i].commit == from.CommitHash && maps.Equal(there[i].files, files) {
			continue
		}
		if err := replace(p.path(app, i), files, from.CommitHash); err != nil {
			return fmt.Errorf("instance %d: %w", i, err)
		}
	}
	return nil
}

func replace(dir string, files map[string]string, commit string) error {
	scratch := dir + ".new"
	if err := os.RemoveAll(scratch); err != nil {
		return err
	}
	for path, content := range files {
		path = filepath.Join(scratch, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(scratch, commitFile), []byte(commit), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(scratch, dir)
}

func (p platform) remove(app string) error {
	return os.RemoveAll(filepath.Dir(p.path(app, 0)))
}

// instances returns all of an application, also those that do not run.
func (p platform) instances(app string) ([]instance, error) {
	out := make([]instance, p.count())
	for i := range out {
		dir := p.path(app, i)
		commit, err := os.ReadFile(filepath.Join(dir, commitFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		files, err := read(dir, "")
		if err != nil {
			return nil, err
		}
		out[i] = instance{commit: string(commit), since: info.ModTime(), files: files}
	}
	return out, nil
}

// read returns the contents of the files in a folder by their paths, without the application's own file and without those whose names begin
// with a dot.
func read(dir, config string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil || relative == config {
			return err
		}
		content, err := os.ReadFile(path)
		files[relative] = string(content)
		return err
	})
	return files, err
}

// changes says which files have changed, one a line.
func changes(before, after map[string]string) []string {
	var out []string
	for path, content := range after {
		if old, ok := before[path]; !ok {
			out = append(out, "+ "+path)
		} else if old != content {
			out = append(out, "~ "+path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			out = append(out, "- "+path)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return out
}
