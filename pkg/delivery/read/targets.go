package read

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Registered are the targets of an application that has some of its own, and a file that names some.
type Registered struct {
	// Targets are the application's own. One that has no folder of its own has that of the file.
	Targets []v1alpha1.Target
	// Files are the positions of the file's targets, by the names that the application has for them.
	Files map[string]int
	// Unknown are the positions of those that the application does not have.
	Unknown []int
}

// Register finds the targets that a file names among an application's own, by the name of the cluster or, as the file may have another name for that, by the
// name of the target.
func Register(own, file []v1alpha1.Target) Registered {
	out := Registered{Targets: slices.Clone(own), Files: map[string]int{}}
	taken := map[int]bool{}
	for _, same := range []func(own, file *v1alpha1.Target) bool{sameClusters, sameName} {
		for i := range file {
			if taken[i] {
				continue
			}
			place := slices.IndexFunc(own, func(target v1alpha1.Target) bool {
				_, has := out.Files[target.Name]
				return !has && same(&target, &file[i])
			})
			if place >= 0 {
				out.Files[own[place].Name], taken[i] = i, true
			}
		}
	}
	for i := range file {
		if !taken[i] {
			out.Unknown = append(out.Unknown, i)
		}
	}
	for i := range out.Targets {
		if of, has := out.Files[out.Targets[i].Name]; has && out.Targets[i].Path == "" {
			out.Targets[i].Path = file[of].Path
		}
	}
	return out
}

func sameClusters(own, file *v1alpha1.Target) bool {
	return own.Cluster == file.Cluster && equality.Semantic.DeepEqual(own.ClusterSelector, file.ClusterSelector)
}

func sameName(own, file *v1alpha1.Target) bool { return own.Name == file.Name }

// rename has stages of the file name targets as the application does.
func (r *Registered) rename(pipeline *v1alpha1.Pipeline, file []v1alpha1.Target) {
	names := map[string]string{}
	for own, i := range r.Files {
		names[file[i].Name] = own
	}
	for i := range pipeline.Stages {
		for j, name := range pipeline.Stages[i].Targets {
			if own, known := names[name]; known {
				pipeline.Stages[i].Targets[j] = own
			}
		}
	}
}
