// Package sources puts the files of revisions into folders for plugins to read, a fresh one for each call: what a plugin does to its files is nobody
// else's concern.
package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/files"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

const (
	// repository and shared are the folders in the one of a call: that of the files, and in it that of what all applications of a repository share.
	repository = "repository"
	shared     = ".pipe"
	// mostFile bounds an application file, in bytes.
	mostFile = 1 << 20
)

// ErrSource is wrapped by errors about files that no other attempt will find otherwise.
var ErrSource = deployments.ErrFiles

// Options say what sources are made of.
type Options struct {
	// Dir is the folder for the files. It belongs to this alone: what is in it at start is removed.
	Dir string
	// Fetch returns the files of a commit, as they were fetched by these credentials, or have been before.
	Fetch func(ctx context.Context, request git.Request, revision git.Revision) (Checkout, error)
	// Request says by which address and credentials the repository of an application is reached.
	Request func(app *v1alpha1.Application) (git.Request, error)
	// Objects returns what a revision holds for a target.
	Objects func(namespace, revision, target string) ([]*unstructured.Unstructured, error)
	// Owner returns as whom a plugin runs, and whether it is somebody else than this process. It may be nil.
	Owner func(plugin string) (uid, gid int, other bool)
	// Called returns how a plugin knows itself, by which it finds what the application file says to it. It may be nil: then that is the name.
	Called func(plugin string) string
}

// Checkout is a commit that can be read, such as a *git.Checkout.
type Checkout interface {
	FS() fs.FS
	Close() error
}

// Sources makes folders for calls of plugins.
type Sources struct {
	Options
}

// New empties the folder: no call goes on that was under way when the process before this one has ended.
func New(o Options) (*Sources, error) {
	if err := os.MkdirAll(o.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("make the folder for the files of plugins: %w", err)
	}
	if err := os.Chmod(o.Dir, 0o711); err != nil { // plugins pass through it, and do not see what is in it
		return nil, fmt.Errorf("make the folder for the files of plugins: %w", err)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("empty the folder for the files of plugins: %w", err)
	}
	for _, entry := range entries {
		if err := remove(filepath.Join(o.Dir, entry.Name())); err != nil {
			return nil, fmt.Errorf("empty the folder for the files of plugins: %w", err)
		}
	}
	return &Sources{o}, nil
}

// Prepare writes the files of a revision for one call of a plugin. Whoever calls it cleans up after the call.
func (s *Sources) Prepare(ctx context.Context, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, plugin string) (*source.DeploymentSource, func() error, error) {
	dir := filepath.Join(s.Dir, strings.ToLower(rand.Text()))
	clean := func() error { return remove(dir) }
	out, err := s.fill(ctx, dir, app, revision)
	if err == nil {
		err = s.own(dir, plugin)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("files of %s for plugin %q: %w", revision.Name, plugin, err), clean())
	}
	return out, clean, nil
}

func (s *Sources) fill(ctx context.Context, dir string, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) (*source.DeploymentSource, error) {
	if err := os.MkdirAll(filepath.Join(dir, repository, shared), 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(dir, repository))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder := "."
	if origin := revision.Spec.Origin; origin != nil && origin.Commit != "" {
		folder = path.Join(".", origin.Path)
		err = s.commit(ctx, root, app, origin, folder)
	} else {
		err = s.objects(root, revision)
	}
	if err != nil {
		return nil, err
	}
	name := app.Spec.Source.Git.ApplicationFile()
	file := path.Join(folder, name)
	config, err := configIn(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		if config, err = s.application(app, revision); err == nil {
			err = root.WriteFile(file, config, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	at := filepath.Join(dir, repository)
	return &source.DeploymentSource{
		ApplicationDirectory: filepath.Join(at, filepath.FromSlash(folder)), CommitHash: deployments.Commit(revision), ApplicationConfig: config,
		ApplicationConfigFilename: name, SharedConfigDirectory: filepath.Join(at, shared),
	}, nil
}

// configIn returns the application file.
func configIn(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > mostFile:
		return nil, fmt.Errorf("%w: %s has %d bytes, and %d are allowed", ErrSource, name, info.Size(), mostFile)
	}
	return root.ReadFile(name)
}

// commit writes the files of a whole repository, as those of an application may refer to others of it.
func (s *Sources) commit(ctx context.Context, root *os.Root, app *v1alpha1.Application, origin *v1alpha1.Origin, folder string) error {
	request := git.Request{URL: origin.URL}
	if app.Spec.Source.Git != nil {
		now, err := s.Request(app)
		if err != nil {
			return err
		}
		if now.URL == origin.URL {
			request.Credentials = now.Credentials // those of another repository are for nobody else to see
		}
	}
	checkout, err := s.Fetch(ctx, request, git.Revision{Commit: origin.Commit, Name: origin.Ref})
	if err != nil {
		return err
	}
	defer checkout.Close()
	if _, err := files.Copy(checkout.FS(), root); err != nil {
		return unusable(err)
	}
	switch info, err := root.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: commit %s has no files in %q", ErrSource, origin.Commit, folder)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: %q is no folder in commit %s", ErrSource, folder, origin.Commit)
	}
	return nil
}

// unusable says of an error about the files themselves that it stays.
func unusable(err error) error {
	if errors.Is(err, files.ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	return err
}

// own gives a folder to whom the plugin runs as.
func (s *Sources) own(dir, plugin string) error {
	if s.Owner == nil {
		return nil
	}
	uid, gid, other := s.Owner(plugin)
	if !other {
		return nil
	}
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, uid, gid) // nobody else can reach it yet: the folder itself comes first, but is not told to anybody
	})
}

// remove removes a folder, whatever a plugin has done to the modes of those in it. What the plugin has started may still be at work there, and put links in the
// place of folders meanwhile: none of them is followed out of it.
func remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := open(dir)
	return errors.Join(ignored(err), os.RemoveAll(dir))
}

// open gives back the modes of folders by which what is in them can be removed.
func open(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) {
		if err = os.Chmod(dir, 0o700); err != nil { // it lies in the folder of the server, where a plugin puts nothing
			return err
		}
		root, err = os.OpenRoot(dir)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return openBelow(root, ".")
}

func openBelow(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	errs := []error{ignored(err)}
	for _, entry := range entries {
		if entry.IsDir() {
			errs = append(errs, ignored(openBelow(root, path.Join(name, entry.Name()))))
		}
	}
	return errors.Join(errs...)
}

// ignored leaves out what removing says better.
func ignored(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
