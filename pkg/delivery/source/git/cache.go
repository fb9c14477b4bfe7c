package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// cache keeps the objects of commits in folders, one for each commit of a repository, until they take too much. What is read is never removed.
//
// A commit's hash says what it holds, so it does not matter who has fetched it. Whether somebody may see it is for Resolve to find out.
type cache struct {
	dir  string
	most int64
	// fetching has one caller at a time fetch a commit.
	fetching turns

	mu      sync.Mutex
	commits map[string]*kept
	uses    int64
}

// kept is a commit in the cache.
type kept struct {
	size    int64
	readers int
	used    int64 // in the order of uses
}

// incoming begins the names of folders that are not whole yet.
const incoming = "incoming-"

func openCache(dir string, most int64) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &cache{dir: dir, most: most, commits: map[string]*kept{}}
	slices.SortStableFunc(entries, byAge)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), incoming) {
			if err := os.RemoveAll(path); err != nil {
				return nil, err
			}
			continue
		}
		size, err := sizeOf(path)
		if err != nil {
			return nil, err
		}
		c.uses++
		c.commits[entry.Name()] = &kept{size: size, used: c.uses}
	}
	return c, nil
}

func byAge(a, b fs.DirEntry) int {
	first, err := a.Info()
	second, err2 := b.Info()
	if errors.Join(err, err2) != nil {
		return 0
	}
	return first.ModTime().Compare(second.ModTime())
}

// keyOf names the folder of a commit.
func keyOf(url, commit string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:8]) + "-" + commit
}

// take returns the folder of a commit, for which fetch fills one if there is none, and what says that it is no longer read. What is here is had at once;
// whoever else wants a commit that is on its way waits for it, until ctx ends, and then fetches it himself if it has not come.
func (c *cache) take(ctx context.Context, url, commit string, fetch func(dir string) error) (dir string, release func(), err error) {
	key := keyOf(url, commit)
	dir = filepath.Join(c.dir, key)
	if release, ok := c.reading(key); ok {
		return dir, release, nil
	}
	done, err := c.fetching.take(ctx, key)
	if err != nil {
		return "", nil, fmt.Errorf("wait for another fetch of the same commit: %w", err)
	}
	defer done()
	if release, ok := c.reading(key); ok {
		return dir, release, nil
	}
	release, err = c.fill(key, fetch)
	if err != nil {
		return "", nil, err
	}
	if err := c.shrink(); err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}

// fill has the folder of a commit filled, and notes a reader of it. A folder that is not whole is never in its place.
func (c *cache) fill(key string, fetch func(dir string) error) (release func(), err error) {
	into, err := os.MkdirTemp(c.dir, incoming)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(into)
	if err := fetch(into); err != nil {
		return nil, err
	}
	size, err := sizeOf(into)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(into, filepath.Join(c.dir, key)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	commit := &kept{size: size}
	c.commits[key] = commit
	return c.read(commit), nil
}

// reading notes a reader of a commit, if it is here.
func (c *cache) reading(key string) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commit, ok := c.commits[key]
	if !ok {
		return nil, false
	}
	return c.read(commit), true
}

// read counts a reader of a commit. Whoever calls it holds the lock.
func (c *cache) read(commit *kept) (release func()) {
	c.uses++
	commit.used = c.uses
	commit.readers++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		commit.readers--
	})
}

// shrink removes what has not been used for longest until the rest is below the bound.
func (c *cache) shrink() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum int64
	var idle []string
	for key, commit := range c.commits {
		sum += commit.size
		if commit.readers == 0 {
			idle = append(idle, key)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return int(c.commits[a].used - c.commits[b].used) })
	for _, key := range idle {
		if sum <= c.most {
			break
		}
		if err := os.RemoveAll(filepath.Join(c.dir, key)); err != nil {
			return err
		}
		sum -= c.commits[key].size
		delete(c.commits, key)
	}
	return nil
}

// sizeOf adds up the files below a folder.
func sizeOf(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
