// Package changes says whom the files concern by which revisions differ: what of them calls for a release, and what a release brings.
package changes

import (
	"path"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Asked reports whether an application goes by the files that a revision changes.
func Asked(spec v1alpha1.ApplicationSpec) bool {
	if len(spec.Trigger.Paths)+len(spec.Trigger.Ignores) > 0 {
		return true
	}
	return spec.Pipeline != nil && slices.ContainsFunc(spec.Pipeline.Stages, func(stage v1alpha1.Stage) bool {
		return stage.SkipOn != nil && len(stage.SkipOn.Paths) > 0
	})
}

// Count reports whether changes call for a release: one of the files does, or it cannot be told which files there are. Files below folder, which is
// that of the source, always do unless they are ignored.
func Count(changes *v1alpha1.RevisionChanges, trigger v1alpha1.Trigger, folder string) bool {
	if len(trigger.Paths)+len(trigger.Ignores) == 0 || changes == nil || changes.More {
		return true
	}
	return slices.ContainsFunc(changes.Files, func(file string) bool {
		switch {
		case MatchesAny(trigger.Ignores, file):
			return false
		case len(trigger.Paths) == 0 || below(folder, file):
			return true
		}
		return MatchesAny(trigger.Paths, file)
	})
}

// below reports whether a file lies in a folder, or in one of those in it.
func below(folder, file string) bool {
	folder = path.Clean(folder)
	return folder == "." || strings.HasPrefix(file, folder+"/")
}

// Between returns the files by which two revisions of an application differ, whichever is the newer one, and whether all of them are known. Each
// revision has those since the one before; all revisions between the two have to be there still.
func Between(revisions []*v1alpha1.ApplicationRevision, one, other string) (files []string, known bool) {
	byName := make(map[string]*v1alpha1.ApplicationRevision, len(revisions))
	for _, revision := range revisions {
		byName[revision.Name] = revision
	}
	newer, older := byName[one], byName[other]
	if newer == nil || older == nil {
		return nil, false
	}
	if newer.Spec.Number < older.Spec.Number {
		newer, older = older, newer
	}
	for newer != older {
		changes := newer.Spec.Changes
		if changes == nil || changes.More {
			return nil, false
		}
		before := byName[changes.Since]
		if before == nil || before.Spec.Number >= newer.Spec.Number || before.Spec.Number < older.Spec.Number {
			return nil, false
		}
		files = append(files, changes.Files...)
		newer = before
	}
	slices.Sort(files)
	return slices.Compact(files), true
}
