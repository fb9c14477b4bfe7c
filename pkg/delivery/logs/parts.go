package logs

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const (
	// mostBytes bounds the lines of a part, in bytes as they are stored, about.
	mostBytes = 64 << 10
	// mostParts bounds the parts of a log.
	mostParts = 16
	// overhead is what a line takes beside its texts.
	overhead = 80
)

// next returns the last part of a release's log as it is to be written, nil if it is as it should be. It reports whether there is still more to
// write after that. last is nil if there is none yet, and is left as it is.
func next(last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release, written map[string][]string, now time.Time) (part *v1alpha1.ReleaseLogPart, more bool) {
	known := map[string]string{}
	if last != nil {
		known = last.Spec.Told
	}
	all := facts(last, release, written, now)
	var news []fact
	for _, f := range all {
		if known[f.key] != f.value {
			news = append(news, f)
		}
	}
	over := release.Status.Phase.Ended()
	if len(news) == 0 && (last == nil || last.Spec.Ended == over) {
		return nil, false
	}
	part = following(last, release, len(news) > 0)
	size := sizeOf(part.Spec.Lines)
	for len(news) > 0 && (size < mostBytes || len(part.Spec.Lines) == 0) {
		f := news[0]
		part.Spec.Lines, part.Spec.Told[f.key] = append(part.Spec.Lines, f.line), f.value
		size, news = size+sizeOf(part.Spec.Lines[len(part.Spec.Lines)-1:]), news[1:]
	}
	if len(news) == 0 {
		forget(part.Spec.Told, all)
	}
	part.Spec.Ended = over && len(news) == 0
	return part, len(news) > 0
}

// following returns what is written next: a copy of the last part, or a new one behind it where that is full.
func following(last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release, lines bool) *v1alpha1.ReleaseLogPart {
	if last != nil && (!lines || sizeOf(last.Spec.Lines) < mostBytes) {
		part := last.DeepCopy()
		if part.Spec.Told == nil {
			part.Spec.Told = map[string]string{}
		}
		return part
	}
	spec := v1alpha1.ReleaseLogPartSpec{Release: release.Name, Told: map[string]string{}}
	if last != nil {
		spec.Number, spec.First = last.Spec.Number+1, last.Spec.First+int64(len(last.Spec.Lines))
		maps.Copy(spec.Told, last.Spec.Told)
	}
	owner := *metav1.NewControllerRef(release, v1alpha1.SchemeGroupVersion.WithKind("Release"))
	owner.BlockOwnerDeletion = nil
	return &v1alpha1.ReleaseLogPart{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: release.Namespace, Name: partName(release, spec.Number), OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{v1alpha1.LabelReleaseUID: string(release.UID), v1alpha1.LabelApplication: release.Spec.Application},
		},
		Spec: spec,
	}
}

// partName is the name of a part. That of the Release may be as long as a name can be, and may have been another one's.
func partName(release *v1alpha1.Release, number int64) string {
	return fmt.Sprintf("%s-%05d", release.UID, number)
}

// forget drops what a status no longer tells. How much is told of what others say of stages stays.
func forget(told map[string]string, all []fact) {
	current := make(map[string]bool, len(all))
	for _, f := range all {
		current[f.key] = true
	}
	maps.DeleteFunc(told, func(key, _ string) bool { return !current[key] && !strings.HasPrefix(key, saidKey) })
}

func sizeOf(lines []v1alpha1.ReleaseLogLine) (n int) {
	for i := range lines {
		line := &lines[i]
		n += overhead + len(line.Stage) + len(line.Target) + len(line.Cluster) + len(line.Message)
	}
	return n
}
