package applications

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/files"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/render/revision"
)

// errNotAllowed says that a manifest may not be part of the application.
var errNotAllowed = errors.New("not allowed")

// errBusy says that files of the namespace are being rendered, or of as many others as may be. It is tried again soon.
var errBusy = errors.New("other files are being rendered")

// errSlow says that it takes too long to render all targets, alone or because the files of others are rendered as well. It is tried again after a while.
var errSlow = errors.New("takes too long")

// mostObjects bounds the objects of all targets together. Those of one have a bound of their own.
const mostObjects = 50_000

// result is what all targets are rendered to.
type result struct {
	set    *revision.Set
	images []render.Image
	// changes are the files by which the source differs from that of the revision before, nil if that is not known.
	changes          *v1alpha1.RevisionChanges
	charts, warnings []string
}

// renderer makes manifests of what sources have.
type renderer struct {
	// confined is asked about the files of strangers. There are few processes for all, and files may take them for as long as they may: so each
	// namespace has one at a time, for all targets of an application.
	confined Renderer
	places   *work.Places
	kinds    *kinds
}

// render makes the manifests of all targets. Targets with the same folder and patches are rendered once, and of others only what differs is kept.
func (r *renderer) render(ctx context.Context, p *plan) (*result, error) {
	free, ok := r.take(p)
	if !ok {
		return nil, errBusy
	}
	defer free()
	content, left, err := contentOf(p)
	if err != nil {
		return nil, err
	}
	set, same, count := revision.NewBuilder(), map[string]string{}, 0
	var images told[render.Image]
	var charts, warnings told[string]
	for i := range p.targets {
		target := &p.targets[i]
		if p.opaque() {
			if err := set.Add(target.Name, nil); err != nil {
				return nil, err
			}
			continue
		}
		options := p.options(target)
		key := shortHash(marshalled([]any{p.folder(target), options, p.changes.Services[target.Name]}))
		if like, done := same[key]; done {
			set.AddLike(target.Name, like)
			continue
		}
		same[key] = target.Name
		made, err := r.renderTarget(ctx, p, target, options)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w: %d of %d targets were rendered within %s, and target %q not; let targets share folder and patches, or divide the application (it is tried again after %s, or when something changes)",
				errSlow, i, len(p.targets), mostLooking, target.Name, rest)
		}
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", target.Name, err)
		}
		if count += len(made.Objects); count > mostObjects {
			return nil, fmt.Errorf("%w: target %q makes it %d objects, and %d are allowed", render.ErrTooLarge, target.Name, count, mostObjects)
		}
		if err := set.Add(target.Name, made.Objects); err != nil {
			return nil, err
		}
		images.add(made.Images...)
		warnings.add(made.Warnings[:min(len(made.Warnings), mostWarnings-len(warnings.list))]...)
		if made.Chart != "" {
			charts.add(made.Chart)
		}
	}
	warnings.add(left...)
	return &result{set: set.Set().With(content), images: images.list, charts: charts.list, warnings: warnings.list}, nil
}

// contentOf is the hash of the files that plugins deliver, empty if none does, and says which of them cannot be read. Manifests that the Application
// holds are known by their own hashes.
func contentOf(p *plan) (hash string, left []string, err error) {
	if len(p.app.Spec.Plugins) == 0 || p.found.Content == nil {
		return "", nil, nil
	}
	hash, unread, err := p.found.Content(p.paths)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("%w: there are no files in %s, and nothing is released of it; correct spec.source.git.path, or delete the Application if nothing is to run",
			render.ErrInvalid, p.folder(&v1alpha1.Target{}))
	case errors.Is(err, files.ErrTooLarge):
		return "", nil, fmt.Errorf("%w: %w", render.ErrTooLarge, err)
	}
	for _, name := range unread {
		left = append(left, "plugins do not get "+name)
	}
	return hash, left, err
}

// opaque reports whether the files of an application are for plugins alone to read.
func (p *plan) opaque() bool { return p.app.Spec.PluginsOnly && p.found.Content != nil }

// mostWarnings bounds the warnings that are gathered. A revision shows fewer.
const mostWarnings = 1_000

// told is what targets tell beside their objects, each thing once.
type told[T comparable] struct {
	list []T
	seen map[T]bool
}

func (t *told[T]) add(all ...T) {
	if t.seen == nil {
		t.seen = map[T]bool{}
	}
	for _, one := range all {
		if !t.seen[one] {
			t.seen[one] = true
			t.list = append(t.list, one)
		}
	}
}

// renderTarget makes the manifests of a target, and refuses those that the application may not have.
func (r *renderer) renderTarget(ctx context.Context, p *plan, target *v1alpha1.Target, options render.Options) (*render.Result, error) {
	bundle, err := p.found.Bundle(*target, options)
	if err != nil {
		return nil, err
	}
	made, err := r.run(ctx, p, bundle, options)
	if err != nil {
		return nil, err
	}
	if len(made.Objects) == 0 && p.app.Spec.Source.Git != nil {
		return nil, emptiness(p, target, made.Warnings)
	}
	rules := manifests.Rules{Namespace: p.app.Namespace, Account: p.app.Spec.ServiceAccountName, Namespaced: r.kinds.namespaced}
	if err := rules.Check(made.Objects); err != nil {
		return nil, fmt.Errorf("%w: in %s: %w", errNotAllowed, place(p, target), err)
	}
	for _, object := range made.Objects {
		for _, field := range manifests.Clean(object) {
			made.Warnings = append(made.Warnings, fmt.Sprintf("%s: %s is left out: it is not for manifests to say", render.NameOf(object), field))
		}
		for _, says := range manifests.Unhonoured(object) {
			made.Warnings = append(made.Warnings, fmt.Sprintf("%s: %s", render.NameOf(object), says))
		}
	}
	if made.Objects, err = p.changed(target, made.Objects); err != nil {
		return nil, fmt.Errorf("%w: tell the pods of variants apart in %s: %w", errNotAllowed, place(p, target), err)
	}
	return made, nil
}

// emptiness says that a folder has no manifests. It is taken for a mistake, as a wrong path is one: a release of nothing would delete all that runs there
// where prune is set.
func emptiness(p *plan, target *v1alpha1.Target, warnings []string) error {
	fix := "spec.source.git.path"
	if target.Path != "" {
		fix = "the path of the target, or spec.source.git.path"
	}
	err := fmt.Errorf("%w: there are no manifests in %s, and nothing is released of it; correct %s, or delete the Application if nothing is to run", render.ErrInvalid, place(p, target), fix)
	if len(warnings) > 0 {
		return fmt.Errorf("%w (%s)", err, warnings[0])
	}
	return err
}

// changed returns the manifests of a target as traffic and stages need them: by labels the pods of the primary are told from those of copies.
func (p *plan) changed(target *v1alpha1.Target, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if p.copies.Labelled {
		if err := copies.Label(objects, p.copies); err != nil {
			return nil, err
		}
	}
	if p.changes.Selects {
		if err := copies.Select(objects, p.copies); err != nil {
			return nil, err
		}
	}
	return copies.WithServices(objects, p.changes.Services[target.Name], p.copies)
}

// run renders in this process what the API has taken in as JSON, and in one of its own all else.
func (r *renderer) run(ctx context.Context, p *plan, bundle *render.Bundle, options render.Options) (*render.Result, error) {
	if trusted(p, options.Patches) {
		return render.Render(ctx, bundle, options)
	}
	return r.confined.Bundle(ctx, bundle, options)
}

// trusted reports whether there is nothing to be afraid of in rendering a target with such patches.
func trusted[T any](p *plan, patches []T) bool { return p.found.Plain && len(patches) == 0 }

// take takes the place of the namespace for a look at all targets, where one of them needs it.
func (r *renderer) take(p *plan) (free func(), ok bool) {
	if !slices.ContainsFunc(p.targets, func(target v1alpha1.Target) bool { return !trusted(p, target.Patches) }) {
		return func() {}, true
	}
	return r.places.Take(p.app.Namespace)
}

// place names where the manifests of a target are.
func place(p *plan, target *v1alpha1.Target) string {
	switch source := p.app.Spec.Source; {
	case source.Git != nil:
		return fmt.Sprintf("folder %q", path.Clean("./"+p.folder(target)))
	case source.Inline != nil:
		return "spec.source.inline"
	}
	return "spec.source.selector"
}
