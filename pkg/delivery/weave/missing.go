package weave

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostMissing bounds how many targets are told of one by one.
const mostMissing = 5

// Missing tells of the targets that after has and before, which may be nil, had not, whose clusters or namespaces there are not. That is no mistake: they may come
// later. The namespace of a target in a cluster is that of the logical cluster as well, for what comes from there.
func Missing(before, after *Pipeline, cluster, namespace func(name string) bool) []string {
	had := sets.New[place]()
	if before != nil {
		for _, e := range before.Spec.Environments {
			for _, t := range e.Targets {
				had.Insert(t.place())
			}
		}
	}
	var out []string
	for i, e := range after.Spec.Environments {
		for j, t := range e.Targets {
			if had.Has(t.place()) {
				continue
			}
			had.Insert(t.place())
			at := field.NewPath("spec", "environments").Index(i).Child("targets").Index(j)
			of := t.Cluster()
			if of != "" && !cluster(of) {
				out = append(out, fmt.Sprintf("%s: no cluster has joined as %q, so the target shows nothing until one does", at.Child("clusterRef", "name"), of))
			}
			switch {
			case namespace(t.Namespace):
			case of == "":
				out = append(out, fmt.Sprintf("%s: there is no namespace %q, so the target shows nothing until there is", at.Child("namespace"), t.Namespace))
			default:
				out = append(out, fmt.Sprintf("%s: the logical cluster has no namespace %q, so of the target only what others run in cluster %q is shown, if its admin allows it",
					at.Child("namespace"), t.Namespace, of))
			}
		}
	}
	if len(out) > mostMissing {
		out = append(out[:mostMissing], fmt.Sprintf("and %d more", len(out)-mostMissing))
	}
	return out
}
