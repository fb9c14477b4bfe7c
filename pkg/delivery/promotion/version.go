package promotion

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"

	"github.com/manifold-dev/manifold/internal/imageref"
)

// Version is what one workload is to run.
type Version struct {
	// Revision is a chart's version, a revision of a source, or tags of images.
	Revision string
	// Images are what follows the repositories of images in their names, such as ":1.2" or "@sha256:...". There are none if nothing runs the version
	// any more that could tell.
	Images map[string]string
}

// Versions are what the workloads of an environment are to run, all the same or each its own.
type Versions struct {
	revision string
	all      *Version
	each     map[string]Version
}

// Of returns what a workload is to run.
func (v Versions) Of(kind, name string) (Version, error) {
	if v.all != nil {
		return *v.all, nil
	}
	found, has := v.each[kind+"/"+name]
	if !has {
		return Version{}, fmt.Errorf("version %s says nothing of %s %s", v.revision, kind, name)
	}
	return found, nil
}

// All returns the version of all workloads if it is one, or else the revision with the images of all of them.
func (v Versions) All() Version {
	if v.all != nil {
		return *v.all
	}
	out := Version{Revision: v.revision, Images: map[string]string{}}
	for _, one := range v.each {
		for repository, rest := range one.Images {
			out.Images[repository] = rest
		}
	}
	return out
}

// VersionsOf returns what a revision stands for that is promoted to an environment. It is read from a target that runs it, first of all from the
// environment before.
func VersionsOf(p *weave.Pipeline, index int, revision string) Versions {
	for _, i := range nearest(index, len(p.Spec.Environments)) {
		e := p.Spec.Environments[i]
		status := p.Status.Environments[e.Name]
		if status == nil {
			continue
		}
		for _, target := range e.Targets {
			if of := StatusOf(target, status.Targets); of != nil && of.MoreWorkloads == 0 && RevisionOf(of.Workloads) == revision {
				return versionsOf(revision, of.Workloads)
			}
		}
	}
	if each := parts(revision); len(each) > 1 {
		return Versions{revision: revision, each: each}
	}
	return Versions{revision: revision, all: &Version{Revision: revision}}
}

// nearest are the indexes of environments, those before first, from the nearest on.
func nearest(index, of int) (out []int) {
	for i := index - 1; i >= 0; i-- {
		out = append(out, i)
	}
	for i := index; i < of; i++ {
		out = append(out, i)
	}
	return out
}

func versionsOf(revision string, workloads []weave.WorkloadStatus) Versions {
	out := Versions{revision: revision, each: map[string]Version{}}
	images := map[string]string{}
	for _, w := range workloads {
		own := map[string]string{}
		for _, image := range w.Images {
			repository, rest := SplitImage(image)
			own[repository], images[repository] = rest, rest
		}
		out.each[w.Kind+"/"+w.Name] = Version{Revision: w.Version, Images: own}
	}
	if workloads[0].Version == revision {
		return Versions{revision: revision, all: &Version{Revision: revision, Images: images}}
	}
	return out
}

// part is how a list names the version of one workload, see RevisionOf.
var part = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*/[a-z0-9][-a-z0-9.]*)=(.+)$`)

// parts reads a list of versions, nil if it is none.
func parts(revision string) map[string]Version {
	out := map[string]Version{}
	for _, text := range strings.Split(revision, ";") {
		match := part.FindStringSubmatch(text)
		if match == nil {
			return nil
		}
		out[match[1]] = Version{Revision: match[2]}
	}
	return out
}

// SplitImage returns the repository of an image, and the tag or digest behind it with what is between.
func SplitImage(image string) (repository, rest string) {
	end := len(imageref.Parse(image).Name)
	return image[:end], image[end:]
}

// Tag returns the tag in what follows the repository of an image, or "".
func Tag(rest string) string {
	tag, _, _ := strings.Cut(rest, "@")
	return strings.TrimPrefix(tag, ":")
}
