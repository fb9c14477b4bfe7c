// Package sources reads what applications are made of: manifests that they hold themselves, objects that users have applied, and folders of git
// repositories.
package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// Found is a source as it is now. Whoever has it closes it.
type Found struct {
	// Key tells this state of the source from others.
	Key string
	// Origin is where it comes from, nil if nobody can tell.
	Origin *v1alpha1.Origin
	// File is what the application file beside the manifests says, nil if there is none.
	File *pipecd.Application
	// Unread are the names of other application files in the folder, where the Application does not say which of them is its own.
	Unread []string
	// Plain says that the manifests are JSON which the API has taken in, so that there is nothing to be afraid of in reading them.
	Plain bool
	// Bundle gathers what a target is rendered from.
	Bundle func(target v1alpha1.Target, options render.Options) (*render.Bundle, error)
	// Content returns the hash of all files in the folder, and of those elsewhere that match patterns, with those that cannot be read. It is nil of a
	// source that has no files.
	Content func(patterns []string) (hash string, left []string, err error)
	// Since returns the files by which this state differs from an earlier commit. It is nil of a source that has no commits.
	Since func(ctx context.Context, commit string) (git.Changes, error)

	close func()
}

// Close lets go of the source.
func (f *Found) Close() {
	if f.close != nil {
		f.close()
	}
}

// Source reads the source of an application.
type Source interface {
	Read(ctx context.Context, app *v1alpha1.Application) (*Found, error)
}

// Inline reads manifests that an application holds itself.
type Inline struct{}

// Read implements Source.
func (Inline) Read(_ context.Context, app *v1alpha1.Application) (*Found, error) {
	files := make(map[string][]byte, len(app.Spec.Source.Inline.Objects))
	for i, object := range app.Spec.Source.Inline.Objects {
		files[fmt.Sprintf("spec.source.inline.objects[%d]", i)] = object.Raw
	}
	return plain(files), nil
}

// plain is what a source has as JSON, by the name of each part.
func plain(files map[string][]byte) *Found {
	return &Found{Key: keyOf(files), Plain: true, Bundle: func(v1alpha1.Target, render.Options) (*render.Bundle, error) {
		return &render.Bundle{Kind: render.Plain, Path: ".", Files: files}, nil
	}}
}

// hashOf puts a zero behind each part.
func hashOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// keyOf is the hash of files.
func keyOf(files map[string][]byte) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, name, string(files[name]))
	}
	return hashOf(parts...)
}
