package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kinds of apps that are found without markers.
const (
	kindHelmRelease   = "HelmRelease"
	kindKustomization = "Kustomization"
	kindApplication   = "Application"
)

// groups are the groups of these kinds. Others may have kinds of the same name.
var groups = map[string]string{
	kindHelmRelease: "helm.toolkit.fluxcd.io", kindKustomization: "kustomize.toolkit.fluxcd.io", kindApplication: "delivery.manifold.dev",
	"Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "CronJob": "batch",
}

// found returns the values by which the app says its version, in the namespaces of the targets.
func found(files map[string][]byte, w Wanted, allowed *budget) ([]place, error) {
	group, known := groups[w.Kind]
	if !known {
		return nil, w.missing("the app is of no kind that is looked for without one")
	}
	l, err := look(files, w, group, allowed)
	if err != nil {
		return nil, err
	}
	var out []place
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(w.Namespaces))) {
		places, err := l.in(namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, places...)
	}
	if len(out) == 0 {
		return nil, w.missing("the environment has no targets")
	}
	return out, nil
}

// missing says that nothing is found, and what to do.
func (w Wanted) missing(why string) error {
	where := "the repository"
	if w.Path != "" {
		where = fmt.Sprintf("folder %q", shown(w.Path))
	}
	return fmt.Errorf("%w: no manifest in %s has a marker of %s, and %s; write %s behind the value that says the version there", ErrMissing, where, w.marker(), why, w.Comment())
}

// looked is what is found of the app.
type looked struct {
	Wanted
	apps     []manifest
	overlays []overlay
}

// manifest is a document with the app.
type manifest struct {
	document
	namespace string // empty if no file says which
}

func (m manifest) String() string { return at(m.file, m.top().Line) }

// look parses what could hold the app, and the kustomizations.
func look(files map[string][]byte, w Wanted, group string, allowed *budget) (*looked, error) {
	out := &looked{Wanted: w}
	var apps []document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		overlaid := isOverlay(name)
		if !mayHold(name) || !overlaid && (!inside(w.Path, name) || !bytes.Contains(content, []byte(w.Name))) {
			continue
		}
		documents, err := allowed.parse(name, content)
		if errors.Is(err, ErrContent) {
			return nil, err
		}
		if err != nil {
			continue // it is a template, or nobody's manifest
		}
		for _, d := range documents {
			if overlaid {
				out.overlays = append(out.overlays, overlayOf(d))
			}
			if d.is(group, w.Kind, w.Name) && inside(w.Path, name) {
				apps = append(apps, d)
			}
		}
	}
	for _, d := range apps {
		out.apps = append(out.apps, manifest{d, out.namespaceOf(d)})
	}
	return out, nil
}

// is reports whether a document holds an object of a kind and a name.
func (d document) is(group, kind, name string) bool {
	of, _, _ := strings.Cut(d.top().text("apiVersion"), "/")
	return of == group && d.top().text("kind") == kind && d.top().text("metadata", "name") == name
}

// namespaceOf returns the namespace that a document is for: what the kustomization of its folder says, or what it says itself.
func (l *looked) namespaceOf(d document) string {
	for _, o := range l.overlays {
		if o.namespace != "" && path.Dir(o.file) == path.Dir(d.file) && o.takes(d.file) {
			return o.namespace
		}
	}
	return d.top().text("metadata", "namespace")
}

// in returns the values that say the version in a namespace.
func (l *looked) in(namespace string) ([]place, error) {
	if l.Kind != kindHelmRelease && l.Kind != kindApplication && l.Kind != kindKustomization {
		return l.images(namespace)
	}
	app, err := l.one(namespace)
	if err != nil {
		return nil, err
	}
	if l.Kind == kindKustomization {
		return l.substituted(app)
	}
	value, want := app.top().field("spec", "chart", "spec", "version"), l.Revision
	if l.Kind == kindApplication {
		value = app.revision(want)
	}
	if !value.scalar() {
		return nil, fmt.Errorf("%w: %s: the %s %s/%s has no value there that says its version", ErrMissing, app, l.Kind, namespace, l.Name)
	}
	if want, one := l.single(); one {
		return []place{{app.file, value, want}}, nil
	}
	return nil, fmt.Errorf("%w: %s: a %s has one version, and not %q", ErrVersion, app, l.Kind, shown(l.Revision))
}

// commit is the hash of a commit.
var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// revision returns the value of an Application that a version is written to: that of its source that is of the version's kind, or its pin.
func (m manifest) revision(version string) *node {
	ref := m.top().field("spec", "source", "git", "ref")
	for _, value := range []*node{ref.field("commit"), ref.field("tag")} {
		if value.scalar() && (value.key == "commit") == commit.MatchString(version) {
			return value
		}
	}
	return m.top().field("spec", "revision")
}

// one returns the only document with the app in a namespace.
func (l *looked) one(namespace string) (manifest, error) {
	var here, nowhere []string
	var out manifest
	for _, app := range l.apps {
		switch app.namespace {
		case namespace:
			here, out = append(here, app.String()), app
		case "":
			nowhere = append(nowhere, app.String())
		}
	}
	switch {
	case len(here) > 1:
		return out, fmt.Errorf("%w: %s are all the %s %s/%s; mark the right one by %s, or name its folder as the path", ErrAmbiguous, listed(here), l.Kind, namespace, l.Name, l.Comment())
	case len(here) == 1:
		return out, l.alone(path.Clean(out.file), out.String())
	case len(nowhere) > 0:
		return out, l.missing(fmt.Sprintf("none is the %s %s/%s: no namespace is said at %s", l.Kind, namespace, l.Name, listed(nowhere)))
	}
	return out, l.missing(fmt.Sprintf("none is the %s %s/%s", l.Kind, namespace, l.Name))
}

// alone refuses a file or the folder of a kustomization that several kustomizations take, by themselves or by way of one: what changes there changes with
// all of them.
func (l *looked) alone(taken, place string) error {
	seen := map[string]bool{}
	for !seen[taken] {
		seen[taken] = true
		var by []string
		next := taken
		for _, o := range l.overlays {
			if o.takes(taken) {
				by, next = append(by, at(o.file, 1)), path.Dir(o.file)
			}
		}
		if len(by) > 1 {
			return fmt.Errorf("%w: what %s says is taken by several kustomizations, %s, which would all get the version; mark the value that only this environment has by %s", ErrAmbiguous,
				place, listed(by), l.Comment())
		}
		taken = next
	}
	return nil
}

// substituted returns the tags that a Kustomization of Flux puts into what it applies.
func (l *looked) substituted(app manifest) ([]place, error) {
	out, missing, err := l.replaced(app.file, app.top().field("spec", "images"))
	if err != nil {
		return nil, err
	}
	if len(out) == 0 || len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s: spec.images has no newTag for %s; write one, or mark the value that says the version by %s", ErrMissing, app, imagesOf(l.Images, missing), l.Comment())
	}
	return out, nil
}

func imagesOf(images map[string]string, missing []string) string {
	if len(images) == 0 {
		return "the version"
	}
	return listed(missing)
}

// replaced returns the tags in a list of images as kustomize has them, and the repositories of the version that are not in it.
func (l *looked) replaced(file string, images *node) (out []place, missing []string, err error) {
	for _, repository := range slices.Sorted(maps.Keys(l.Images)) {
		here := 0
		for _, image := range images.items() {
			if !becomes(image, repository) {
				continue
			}
			if image.field("digest").scalar() {
				return nil, nil, fmt.Errorf("%w: %s: the image %s is pinned by its digest, and a promotion changes tags; write newTag in its place", ErrContent, at(file, image.Line), shown(repository))
			}
			if value := image.field("newTag"); value.scalar() {
				out = append(out, place{file, value, l.Images[repository]})
				here++
			}
		}
		switch {
		case here == 0:
			missing = append(missing, shown(repository))
		case here > 1:
			return nil, nil, fmt.Errorf("%w: %s has several tags for the image %s", ErrAmbiguous, at(file, images.Line), shown(repository))
		}
	}
	return out, missing, nil
}

// becomes reports whether an entry of a list of images is about what becomes the image of a repository.
func becomes(image *node, repository string) bool {
	if name := image.text("newName"); name != "" {
		return name == repository
	}
	return image.text("name") == repository
}

// none reports whether nothing worse is wrong than that there is no such manifest.
func none(err error) bool { return errors.Is(err, ErrMissing) }
