package pipecd

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// targets reads the lists of targets in an object, under both of their names, and returns the names of those in them. Stages may have the names alone.
func (r *reading) targets(in *fields) []string {
	var out []string
	note := func(at *field.Path, name string) {
		switch {
		case name == "":
		case slices.Contains(out, name):
			r.errs = append(r.errs, field.Duplicate(at, name))
		default:
			out = append(out, name)
		}
	}
	for _, key := range []string{"multiTarget", "multiTargets"} {
		if named(in.values[key]) {
			for i, name := range in.texts(key) {
				at := in.at(key).Index(i)
				r.add(at, v1alpha1.Target{Name: name, Cluster: name}, nil)
				note(at, name)
			}
			continue
		}
		for _, entry := range in.objects(key) {
			note(entry.path, r.target(entry))
		}
	}
	return out
}

// named reports whether a list has names, rather than objects.
func named(list any) bool {
	entries, _ := list.([]any)
	return slices.ContainsFunc(entries, func(entry any) bool { _, is := entry.(string); return is })
}

// target reads one entry: a provider and a folder, or a target of a plugin with a folder or files. It returns the target's name.
func (r *reading) target(entry *fields) string {
	if entry.has("provider") == entry.has("target") {
		r.refuse(entry.path, field.OmitValueType{}, "must have either a provider or a target")
	}
	out := v1alpha1.Target{}
	for _, key := range []string{"provider", "target"} {
		place := entry.object(key)
		name, labels := place.text("name"), place.textMap("labels")
		switch {
		case place.values == nil:
		case name != "":
			out.Name, out.Cluster = name, name
			if labels != nil {
				r.ignore(place.at("labels"), "the name says which cluster it is")
			}
		case labels != nil:
			out.Name, out.ClusterSelector = joined(labels), &metav1.LabelSelector{MatchLabels: labels}
		default:
			r.errs = append(r.errs, field.Required(place.at("name"), "it is the name of a cluster"))
		}
		place.done()
	}
	for _, key := range []string{"resourceDir", "kustomizeDir"} {
		text := entry.text(key)
		if text == "" {
			continue
		}
		folder := r.folder(entry.at(key), text)
		if out.Path != "" && out.Path != folder {
			r.refuse(entry.at(key), text, fmt.Sprintf("resourceDir is %q: write one of them, or the same twice", out.Path))
		}
		out.Path = folder
	}
	manifests := entry.texts("manifests")
	r.programs(entry)
	entry.done()
	if out.Name != "" {
		r.add(entry.path, out, manifests)
	}
	return out.Name
}

// joined makes a name of labels.
func joined(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, labels[key])
	}
	return strings.ToLower(strings.Join(out, "-"))
}

func (r *reading) folder(at *field.Path, folder string) string {
	clean := path.Clean(folder)
	if path.IsAbs(folder) || clean == ".." || strings.HasPrefix(clean, "../") {
		r.refuse(at, folder, "must be a folder below that of the application file")
	}
	return clean
}

// add takes a target in. Several stages may name the same one, but not with different manifests: a target has one folder.
func (r *reading) add(at *field.Path, target v1alpha1.Target, manifests []string) {
	place := slices.IndexFunc(r.out.Spec.Targets, func(t v1alpha1.Target) bool { return t.Name == target.Name })
	if place < 0 {
		r.out.Spec.Targets, r.out.Named[target.Name] = append(r.out.Spec.Targets, target), at.String()
		if manifests != nil {
			r.out.Inputs[target.Name] = Input{Manifests: manifests}
		}
		return
	}
	known := &r.out.Spec.Targets[place]
	if target.Path != "" && target.Path != known.Path {
		r.refuse(at, target.Path, fmt.Sprintf("target %q has the manifests in %q already: a target has the same ones in all stages", target.Name, known.Path))
	}
	if manifests != nil && !slices.Equal(manifests, r.out.Inputs[target.Name].Manifests) {
		r.refuse(at, manifests, fmt.Sprintf("target %q has other manifests already: a target has the same ones in all stages", target.Name))
	}
}
