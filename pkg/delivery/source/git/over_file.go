package git

import (
	"context"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	objects "github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// overFile starts a session with a repository on the server's own disk, in the process: no program is run.
func overFile(ep *transport.Endpoint, limits Limits) (transport.UploadPackSession, error) {
	path := ep.Path
	if inside := filepath.Join(path, ".git"); isFolder(inside) {
		path = inside
	}
	if !isFolder(filepath.Join(path, "objects")) {
		return nil, transport.ErrRepositoryNotFound
	}
	repository := filesystem.NewStorage(osfs.New(path), objects.NewObjectLRUDefault())
	session, err := server.NewClient(server.MapLoader{ep.String(): repository}).NewUploadPackSession(ep, nil)
	if err != nil {
		return nil, err
	}
	return fileSession{session, repository, limits}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fileSession also shows the commits of tags that are objects of their own, as git's program does.
type fileSession struct {
	transport.UploadPackSession
	repository storer.EncodedObjectStorer
	limits     Limits
}

// AdvertisedReferencesContext implements transport.Session.
func (s fileSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	shown, err := s.UploadPackSession.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	for name, hash := range shown.References {
		if decodable(s.repository, hash, s.limits) != nil {
			continue
		}
		tag, err := object.GetTag(s.repository, hash)
		if err != nil {
			continue
		}
		if tag.TargetType == plumbing.CommitObject {
			shown.Peeled[name] = tag.Target
		}
	}
	return shown, nil
}
