package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/sync/semaphore"
)

// Client fetches commits into a folder. It may be used by several goroutines.
type Client struct {
	policy Policy
	limits Limits
	cache  *cache
	// indexing has those wait who would index a pack while others do: that takes what a pack unpacks to through memory.
	indexing *semaphore.Weighted
}

// New returns a client that keeps commits in the folder dir, which it makes, and which belongs to it alone.
func New(dir string, policy Policy, limits Limits) (*Client, error) {
	limits = limits.withDefaults()
	kept, err := openCache(dir, limits.Cache)
	if err != nil {
		return nil, fmt.Errorf("open the folder for git commits: %w", err)
	}
	return &Client{policy: policy, limits: limits, cache: kept, indexing: semaphore.NewWeighted(limits.Indexing)}, nil
}

// Resolve looks up which commit the ref stands for now. It also shows that these credentials may see the repository.
func (c *Client) Resolve(ctx context.Context, request Request) (Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	revision, err := recovered(func() (Revision, error) {
		if _, err := request.Ref.validate(); err != nil {
			return Revision{}, err
		}
		session, refs, err := c.open(ctx, request)
		if err != nil {
			return Revision{}, err
		}
		defer session.Close()
		return choose(refs, request.Ref)
	})
	return revision, request.explain("look up", err)
}

// Fetch returns the files of a commit that Resolve has returned for the same request just now. It asks the repository only if the commit is
// not here yet. Whoever calls it closes the checkout.
func (c *Client) Fetch(ctx context.Context, request Request, revision Revision) (*Checkout, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	checkout, err := recovered(func() (*Checkout, error) {
		if !fullHash.MatchString(revision.Commit) {
			return nil, fmt.Errorf("%w: %q is no hash of a commit", ErrRefused, revision.Commit)
		}
		dir, release, err := c.cache.take(ctx, request.URL, revision.Commit, func(dir string) error {
			return c.fetch(ctx, request, revision, dir)
		})
		if err != nil {
			return nil, err
		}
		checkout, err := openCheckout(dir, revision, c.limits, release)
		if err != nil {
			release()
			return nil, err
		}
		return checkout, nil
	})
	return checkout, request.explain("fetch", err)
}

// recovered turns a panic into an error: what is parsed has been written by others.
func recovered[T any](f func() (T, error)) (_ T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: what the repository sends is malformed: %v", ErrContent, r)
		}
	}()
	return f()
}

// open starts a session and reads what refs the repository shows.
func (c *Client) open(ctx context.Context, request Request) (transport.UploadPackSession, *packp.AdvRefs, error) {
	session, err := c.session(request)
	if err != nil {
		return nil, nil, err
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	return session, refs, nil
}

func (c *Client) session(request Request) (transport.UploadPackSession, error) {
	ep, err := c.policy.endpoint(request)
	if err != nil {
		return nil, err
	}
	switch ep.Protocol {
	case "ssh":
		return c.overSSH(ep, request.Credentials, transport.UploadPackServiceName)
	case "file":
		return overFile(ep, c.limits)
	default:
		over, err := c.overHTTP(request.Credentials)
		if err != nil {
			return nil, err
		}
		return over.NewUploadPackSession(ep, httpAuth(request.Credentials))
	}
}

// fetch puts the objects of a commit into dir.
func (c *Client) fetch(ctx context.Context, request Request, revision Revision, dir string) error {
	session, refs, err := c.open(ctx, request)
	if err != nil {
		return err
	}
	defer session.Close()
	wanted, err := want(refs, revision, strings.Contains(request.URL, "/_git/"))
	if err != nil {
		return err
	}
	answer, err := session.UploadPack(ctx, wanted)
	if err != nil {
		return unasked(revision, err)
	}
	defer answer.Close()
	if err := c.take(ctx, demultiplexed(wanted.Capabilities, answer), revision, dir); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

// take keeps a pack that is whole. Repositories send at their own pace, so that it is kept first; then it is taken apart when there is room for that.
func (c *Client) take(ctx context.Context, pack io.Reader, revision Revision, dir string) error {
	file, err := receive(pack, dir, c.limits)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := c.indexing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.indexing.Release(1)
	if err := index(ctx, file, dir, c.limits); err != nil {
		return err
	}
	return complete(dir, revision, c.limits)
}

// unasked gives the error of a request for a commit its likely reason.
func unasked(revision Revision, err error) error {
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return fmt.Errorf("%w: commit %s: %w", ErrNoRef, revision.Commit, err)
	}
	return err
}

// want asks for a commit without its history where the repository can do that. Of a repository that gives out no commit by its hash, it asks for
// all that branches and tags reach. Azure DevOps answers only those who say that they negotiate, which nobody does who has nothing yet.
func want(refs *packp.AdvRefs, revision Revision, negotiates bool) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	if negotiates {
		if err := request.Capabilities.Set(capability.MultiACK); err != nil {
			return nil, err
		}
	}
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := request.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	commit := plumbing.NewHash(revision.Commit)
	if !given(refs, commit) {
		request.Wants = tips(refs)
		return request, nil
	}
	request.Wants = []plumbing.Hash{commit}
	if refs.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		return request, request.Capabilities.Set(capability.Shallow)
	}
	return request, nil
}

// given reports whether the repository gives out a commit when asked by its hash.
func given(refs *packp.AdvRefs, commit plumbing.Hash) bool {
	if refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return true
	}
	for name, hash := range refs.References {
		if hash == commit || refs.Peeled[name] == commit {
			return true
		}
	}
	return refs.Head != nil && *refs.Head == commit
}

// tips are what branches and tags point at, each once, in a stable order.
func tips(refs *packp.AdvRefs) []plumbing.Hash {
	var out []plumbing.Hash
	for name, hash := range refs.References {
		if named := plumbing.ReferenceName(name); named.IsBranch() || named.IsTag() {
			out = append(out, hash)
		}
	}
	plumbing.HashesSort(out)
	return slices.Compact(out)
}

// demultiplexed returns the pack out of an answer that also carries progress and errors.
func demultiplexed(capabilities *capability.List, answer io.Reader) io.Reader {
	switch {
	case capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, answer)
	case capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, answer)
	}
	return answer
}

// complete checks that a folder holds all that the tree of a commit names, so that an answer in parts is not kept.
func complete(dir string, revision Revision, limits Limits) error {
	checkout, err := openCheckout(dir, revision, limits, func() {})
	if err != nil {
		return err
	}
	defer checkout.Close()
	return checkout.tree.complete()
}

// newRepository makes the folders of a bare repository.
func newRepository(dir string) error {
	return os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700)
}
