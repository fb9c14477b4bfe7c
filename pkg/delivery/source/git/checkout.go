package git

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	objects "github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/manifold-dev/manifold/internal/text"
)

// Checkout is a commit that can be read.
type Checkout struct {
	Origin Origin

	tree    *tree
	store   *filesystem.Storage
	release func()
}

// Origin says where a commit comes from, in words that are safe to show.
type Origin struct {
	Commit  string
	Ref     string // the branch or tag that led there
	Author  string
	Time    time.Time
	Message string // its first line
}

// FS shows the files of the commit until the checkout is closed. A link to a file is that file, a link to a folder is a link when a folder is
// listed and that folder when it is opened. Submodules, links that leave the repository and files that are kept elsewhere by Git LFS are
// listed, and errors when they are opened.
func (c *Checkout) FS() fs.FS { return c.tree }

// Close lets go of the commit.
func (c *Checkout) Close() error {
	c.release()
	return c.store.Close()
}

// mostAuthor and mostMessage bound what is taken over of a commit's own words, in bytes.
const (
	mostAuthor  = 200
	mostMessage = 500
)

func originOf(commit *object.Commit, revision Revision) Origin {
	return Origin{
		Commit:  commit.Hash.String(),
		Ref:     text.Line(revision.Name, mostName),
		Author:  text.Line(commit.Author.Name, mostAuthor),
		Time:    commit.Author.When.UTC(),
		Message: text.FirstLine(commit.Message, mostMessage),
	}
}

// openCheckout reads the commit in the repository at dir and lists its tree.
func openCheckout(dir string, revision Revision, limits Limits, release func()) (*Checkout, error) {
	store := filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), objects.NewObjectLRU(objectCache), filesystem.Options{KeepDescriptors: true})
	commit, err := commitIn(store, revision.Commit, limits)
	if err != nil {
		store.Close()
		return nil, err
	}
	listed, err := list(store, commit.TreeHash, limits)
	if err != nil {
		store.Close()
		return nil, err
	}
	return &Checkout{Origin: originOf(commit, revision), tree: listed, store: store, release: release}, nil
}

// commitIn reads a commit.
func commitIn(store *filesystem.Storage, hash string, limits Limits) (*object.Commit, error) {
	err := decodable(store, plumbing.NewHash(hash), limits)
	if err == nil {
		var commit *object.Commit
		if commit, err = object.GetCommit(store, plumbing.NewHash(hash)); err == nil {
			return commit, nil
		}
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return nil, fmt.Errorf("%w: commit %s", ErrNoRef, hash)
	case errors.Is(err, ErrTooLarge):
		return nil, fmt.Errorf("commit %s: %w", hash, err)
	}
	return nil, fmt.Errorf("%w: commit %s: %w", ErrContent, hash, err)
}

// objectCache is what a checkout keeps of objects in memory, in bytes.
const objectCache = 16 << 20
