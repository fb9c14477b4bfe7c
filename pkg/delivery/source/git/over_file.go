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
	if !isFolder(filepath.Join(ep.Path, "objects")) {
		return nil, transport.ErrRepositoryNotFound
	}
	repository := weighed{filesystem.NewStorage(osfs.New(ep.Path, osfs.WithBoundOS()), objects.NewObjectLRU(objectCache)), limits} // no link in it leads out of it
	session, err := server.NewClient(server.MapLoader{ep.String(): repository}).NewUploadPackSession(ep, nil)
	if err != nil {
		return nil, err
	}
	return fileSession{session, repository}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// weighed is a repository whose objects are measured before they are decoded: those who push there are strangers as well.
type weighed struct {
	*filesystem.Storage
	limits Limits
}

// EncodedObject implements storer.EncodedObjectStorer.
func (w weighed) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	size, err := w.EncodedObjectSize(hash)
	if err != nil {
		return nil, err
	}
	if size > w.limits.Object {
		return nil, tooLarge(w.limits)
	}
	found, err := w.Storage.EncodedObject(kind, hash)
	if err == nil && found.Type() != plumbing.BlobObject {
		err = decodable(w.Storage, hash, w.limits)
	}
	return found, err
}

// fileSession also shows the commits of tags that are objects of their own, as git's program does.
type fileSession struct {
	transport.UploadPackSession
	repository storer.EncodedObjectStorer
}

// AdvertisedReferencesContext implements transport.Session.
func (s fileSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	shown, err := s.UploadPackSession.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	for name, hash := range shown.References {
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
