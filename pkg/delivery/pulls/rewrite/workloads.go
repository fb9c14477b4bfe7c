package rewrite

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/imageref"
)

// images returns the tags of the app's images in a namespace: those that a kustomization puts there, and else those of its manifest.
func (l *looked) images(namespace string) ([]place, error) {
	if len(l.Images) == 0 {
		return nil, fmt.Errorf("%w: a %s has images, and the version %q says no tag of any", ErrVersion, l.Kind, shown(l.Revision))
	}
	app, err := l.one(namespace)
	if err != nil && !none(err) {
		return nil, err
	}
	there := err == nil
	var out []place
	for _, repository := range slices.Sorted(maps.Keys(l.Images)) {
		places, overlay, missing := l.overlaid(namespace, repository)
		switch {
		case missing != nil:
			return nil, missing
		case len(places) > 0 && there && !inside(path.Dir(overlay), app.file):
			return nil, fmt.Errorf("%w: both %s and %s say a tag of the image %s in namespace %s; mark the right one by %s", ErrAmbiguous, app, at(overlay, places[0].node.Line),
				shown(repository), namespace, l.Comment())
		case len(places) == 0 && there:
			if places, missing = l.contained(app, repository); missing != nil {
				return nil, missing
			}
		}
		if len(places) == 0 {
			return nil, l.noImage(namespace, repository, app, err)
		}
		out = append(out, places...)
	}
	return out, nil
}

// noImage says that an image of the version is nowhere.
func (l *looked) noImage(namespace, repository string, app manifest, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s, the %s %s/%s, has no image %s; mark the value that says its tag by %s", ErrMissing, app, l.Kind, namespace, l.Name, shown(repository), l.Comment())
}

// overlaid returns the tag that a kustomization for the namespace gives an image.
func (l *looked) overlaid(namespace, repository string) (out []place, file string, err error) {
	one := &looked{Wanted: l.Wanted}
	one.Images = map[string]string{repository: l.Images[repository]}
	var where []string
	for _, o := range l.overlays {
		if o.namespace != namespace || !inside(l.Path, o.file) {
			continue
		}
		places, _, err := one.replaced(o.file, o.top().field("images"))
		if err != nil {
			return nil, "", err
		}
		if len(places) > 0 {
			out, file, where = places, o.file, append(where, at(o.file, places[0].node.Line))
		}
	}
	if len(where) > 1 {
		return nil, "", fmt.Errorf("%w: %s all give a tag to the image %s in namespace %s; mark the right one by %s, or name its folder as the path", ErrAmbiguous, listed(where),
			shown(repository), namespace, l.Comment())
	}
	if file != "" {
		err = l.alone(path.Dir(file), at(file, out[0].node.Line))
	}
	return out, file, err
}

// contained returns the images of the app's pods that are of a repository.
func (l *looked) contained(app manifest, repository string) ([]place, error) {
	pod := app.top().field("spec", "template", "spec")
	if l.Kind == "CronJob" {
		pod = app.top().field("spec", "jobTemplate", "spec", "template", "spec")
	}
	var out []place
	for _, container := range slices.Concat(pod.field("initContainers").items(), pod.field("containers").items()) {
		image := container.field("image")
		if !image.scalar() || imageref.Parse(image.Value).Name != repository {
			continue
		}
		want, _, err := l.retagged(image.Value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, at(app.file, image.Line))
		}
		out = append(out, place{app.file, image, want})
	}
	return out, nil
}

// overlay is a kustomization as kustomize reads it.
type overlay struct {
	document
	namespace string
	// entries are the files and folders that it takes, from the root of the repository.
	entries []string
}

// isOverlay reports whether a file is a kustomization, by its name.
func isOverlay(name string) bool {
	switch path.Base(name) {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return true
	}
	return false
}

func overlayOf(d document) overlay {
	out := overlay{document: d, namespace: d.top().text("namespace")}
	for _, field := range []string{"resources", "bases", "components"} {
		for _, entry := range d.top().field(field).items() {
			if entry.scalar() && !strings.Contains(entry.Value, "://") {
				out.entries = append(out.entries, path.Join(path.Dir(d.file), entry.Value))
			}
		}
	}
	return out
}

// takes reports whether the kustomization itself names a file.
func (o overlay) takes(file string) bool { return slices.Contains(o.entries, path.Clean(file)) }
