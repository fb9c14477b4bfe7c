package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"
)

// ErrRejected says that the repository does not take what is pushed.
var ErrRejected = errors.New("the repository does not take it")

// Change is a commit that is to be made on top of another one, and the branch that is to lead to it.
type Change struct {
	// Branch is to lead to the new commit. It is either not there yet or leads to the commit that the change is made to: nothing of others is overwritten.
	Branch string
	// Files are the new contents of files of the commit, by their paths. They keep their modes.
	Files map[string][]byte
	// Author and Email are who has made it, at Time, with Message.
	Author, Email, Message string
	Time                   time.Time
}

// Regular hands on the files of the commit in the order of their paths, with what reads one: no links, which are files of another place or lead out of the
// repository, and no submodules.
func (c *Checkout) Regular(visit func(name string, size int64, read func() ([]byte, error)) error) error {
	return c.tree.regular(c.tree.root, ".", visit)
}

func (t *tree) regular(folder *node, at string, visit func(name string, size int64, read func() ([]byte, error)) error) error {
	for _, name := range slices.Sorted(maps.Keys(folder.children)) {
		child, below := folder.children[name], path.Join(at, name)
		var err error
		switch child.mode {
		case filemode.Dir:
			err = t.regular(child, below, visit)
		case filemode.Regular, filemode.Deprecated, filemode.Executable:
			err = visit(below, t.describe(name, child).size, func() ([]byte, error) { return t.read(child, t.limits.File) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Push makes a commit of a change to what was fetched for the same request, and has a branch of the repository lead to it. It returns the commit's hash.
func (c *Client) Push(ctx context.Context, request Request, checkout *Checkout, change Change) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	request.Ref = Ref{Branch: change.Branch}
	commit, err := recovered(func() (string, error) {
		branch := plumbing.NewBranchReferenceName(change.Branch)
		if err := branch.Validate(); err != nil || len(change.Branch) > mostName {
			return "", fmt.Errorf("%w: no branch can have this name", ErrRefused)
		}
		made := memory.NewStorage()
		commit, err := checkout.commit(made, change)
		if err != nil {
			return "", err
		}
		return commit.String(), c.push(ctx, request, branch, checkout.Origin.Commit, commit, made)
	})
	return commit, request.explain("push to", err)
}

// push sends the objects of a new commit.
func (c *Client) push(ctx context.Context, request Request, branch plumbing.ReferenceName, on string, commit plumbing.Hash, made *memory.Storage) error {
	session, err := c.receiving(request)
	if err != nil {
		return err
	}
	defer session.Close()
	shown, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}
	before, there := shown.References[branch.String()]
	if there && before.String() != on {
		return fmt.Errorf("%w: the branch is there with other commits", ErrRejected)
	}
	var hashes []plumbing.Hash
	for hash := range made.Objects {
		hashes = append(hashes, hash)
	}
	plumbing.HashesSort(hashes)
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, made, false).Encode(hashes, 0); err != nil {
		return err
	}
	update := packp.NewReferenceUpdateRequestFromCapabilities(shown.Capabilities)
	update.Commands = []*packp.Command{{Name: branch, Old: before, New: commit}}
	update.Packfile = io.NopCloser(&pack)
	report, err := session.ReceivePack(ctx, update)
	if err != nil && report != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

// receiving starts a session that pushes. Repositories on the server's own disk may be read by those who may name one, and nothing else.
func (c *Client) receiving(request Request) (transport.ReceivePackSession, error) {
	ep, err := c.policy.endpoint(request)
	if err != nil {
		return nil, err
	}
	switch ep.Protocol {
	case "ssh":
		return c.overSSH(ep, request.Credentials, transport.ReceivePackServiceName)
	case "file":
		return nil, fmt.Errorf("%w: url: nothing is pushed to a repository on the server's own disk; use https or ssh", ErrRefused)
	}
	over, err := c.overHTTP(request.Credentials)
	if err != nil {
		return nil, err
	}
	return over.NewReceivePackSession(ep, httpAuth(request.Credentials))
}

// commit makes the objects of a change: its files, the folders above them, and the commit.
func (c *Checkout) commit(into *memory.Storage, change Change) (plumbing.Hash, error) {
	files := map[string]plumbing.Hash{}
	for name, content := range change.Files {
		blob := into.NewEncodedObject()
		blob.SetType(plumbing.BlobObject)
		if err := fill(blob, content); err != nil {
			return plumbing.ZeroHash, err
		}
		hash, err := into.SetEncodedObject(blob)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		files[name] = hash
	}
	root, err := c.replaced(into, c.tree.root.hash, ".", files)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if len(files) > 0 {
		return plumbing.ZeroHash, fmt.Errorf("%w: the commit has no file %q", ErrContent, slices.Sorted(maps.Keys(files))[0])
	}
	by := object.Signature{Name: change.Author, Email: change.Email, When: change.Time}
	made := into.NewEncodedObject()
	commit := &object.Commit{
		Author: by, Committer: by, Message: change.Message, TreeHash: root, ParentHashes: []plumbing.Hash{plumbing.NewHash(c.Origin.Commit)},
	}
	if err := commit.Encode(made); err != nil {
		return plumbing.ZeroHash, err
	}
	return into.SetEncodedObject(made)
}

func fill(o plumbing.EncodedObject, content []byte) error {
	writer, err := o.Writer()
	if err != nil {
		return err
	}
	_, err = writer.Write(content)
	return errors.Join(err, writer.Close())
}

// replaced makes the folder at a path anew with other contents of the files that lie in it, which it takes out of files. They have to be files already.
func (c *Checkout) replaced(into *memory.Storage, folder plumbing.Hash, at string, files map[string]plumbing.Hash) (plumbing.Hash, error) {
	c.tree.mu.Lock()
	read, err := object.GetTree(c.store, folder)
	c.tree.mu.Unlock()
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("%w: folder %q: %w", ErrContent, at, err)
	}
	entries := slices.Clone(read.Entries)
	for i, entry := range entries {
		name := path.Join(at, entry.Name)
		content, changes := files[name]
		switch {
		case changes && (entry.Mode.IsRegular() || entry.Mode == filemode.Executable):
			entries[i].Hash = content
			delete(files, name)
		case entry.Mode == filemode.Dir && anyBelow(files, name):
			if entries[i].Hash, err = c.replaced(into, entry.Hash, name, files); err != nil {
				return plumbing.ZeroHash, err
			}
		}
	}
	made := into.NewEncodedObject()
	if err := (&object.Tree{Entries: entries}).Encode(made); err != nil {
		return plumbing.ZeroHash, err
	}
	return into.SetEncodedObject(made)
}

func anyBelow(files map[string]plumbing.Hash, folder string) bool {
	for name := range files {
		if strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}
