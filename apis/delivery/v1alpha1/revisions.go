package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// RevisionName returns the name of a revision of an application: web-v7.
func RevisionName(application string, number int64) string {
	return fmt.Sprintf("%s-v%d", application, number)
}

// RevisionNumber returns the number of the revision of an application that has this name, and 0 if none can.
func RevisionNumber(application, revision string) int64 {
	digits, cut := strings.CutPrefix(revision, application+"-v")
	number, err := strconv.ParseInt(digits, 10, 64)
	if !cut || err != nil || number < 1 || RevisionName(application, number) != revision {
		return 0
	}
	return number
}

// ParseRevisionName returns the application and the number of the revision that has this name, and false if none can.
func ParseRevisionName(revision string) (application string, number int64, ok bool) {
	i := strings.LastIndex(revision, "-v")
	if i < 1 {
		return "", 0, false
	}
	number = RevisionNumber(revision[:i], revision)
	return revision[:i], number, number > 0
}

// ChunkName returns the name of a chunk of a revision, which are counted from 1: web-v7-1.
func ChunkName(revision string, index int) string {
	return fmt.Sprintf("%s-%d", revision, index)
}

// IsChunk reports whether the object holds further manifests of a revision, and is none itself.
func (r *ApplicationRevision) IsChunk() bool {
	return r.Spec.ChunkOf != ""
}
