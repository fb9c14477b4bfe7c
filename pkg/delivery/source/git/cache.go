package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/keymutex"
)

// cache keeps the objects of commits in folders, one for each commit of a repository, until they take too much. What is read is never removed.
//
// A commit's hash says what it holds, so it does not matter who has fetched it. Whether somebody may see it is for Resolve to find out.
type cache struct {
	dir  string
	most int64
	// fetching has one caller at a time fetch a commit.
	fetching keymutex.KeyMutex

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
	c := &cache{dir: dir, most: most, fetching: keymutex.NewHashed(64), commits: map[string]*kept{}}
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

// take returns the folder of a commit, for which fetch fills one if there is none, and what says that it is no longer read.
func (c *cache) take(url, commit string, fetch func(dir string) error) (dir string, release func(), err error) {
	key := keyOf(url, commit)
	c.fetching.LockKey(key)
	defer c.fetching.UnlockKey(key)
	dir = filepath.Join(c.dir, key)
	if release, ok := c.reading(key); ok {
		return dir, release, nil
	}
	into, err := os.MkdirTemp(c.dir, incoming)
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(into)
	if err := fetch(into); err != nil {
		return "", nil, err
	}
	size, err := sizeOf(into)
	if err != nil {
		return "", nil, err
	}
	if err := os.Rename(into, dir); err != nil {
		return "", nil, err
	}
	c.mu.Lock()
	c.commits[key] = &kept{size: size}
	c.mu.Unlock()
	release, _ = c.reading(key)
	if err := c.shrink(); err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}

// reading notes a reader of a commit, if it is here.
func (c *cache) reading(key string) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commit, ok := c.commits[key]
	if !ok {
		return nil, false
	}
	c.uses++
	commit.used = c.uses
	commit.readers++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		commit.readers--
	}), true
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
