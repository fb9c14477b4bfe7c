package delivery

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// mostLine bounds a line of a log as it is shown, in bytes.
const mostLine = 1024

// again is how long a watch that has ended is waited with.
const again = time.Second

// follower writes a log, line by line.
type follower struct {
	*logText
	out io.Writer
	// position is that of the next line.
	position int64
}

// aside is the context of a request for parts. The cache in front of the store takes a name in the request, which is the release's, for that of the
// object that is watched.
func (f *follower) aside(ctx context.Context) context.Context {
	version := v1alpha1.SchemeGroupVersion
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: "watch", APIGroup: version.Group, APIVersion: version.Version, Resource: "releaselogparts", Namespace: f.release.Namespace,
	})
}

// run writes what there is, and what comes until the release has ended if that is wanted. A watch that ends is made anew.
func (f *follower) run(ctx context.Context) error {
	ctx = f.aside(ctx)
	for {
		over, version, err := f.list(ctx)
		if err != nil || over || !f.options.Follow {
			return err
		}
		if over, err = f.watch(ctx, version); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

func (f *follower) selected(version string) *internalversion.ListOptions {
	of := labels.SelectorFromSet(labels.Set{v1alpha1.LabelReleaseUID: string(f.release.UID)})
	return &internalversion.ListOptions{LabelSelector: of, ResourceVersion: version}
}

// list writes the lines that are there, and reports whether no more will come.
func (f *follower) list(ctx context.Context) (over bool, version string, err error) {
	found, err := f.parts.List(ctx, f.selected(""))
	if err != nil {
		return false, "", err
	}
	parts := found.(*v1alpha1.ReleaseLogPartList)
	slices.SortFunc(parts.Items, func(a, b v1alpha1.ReleaseLogPart) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	for i := range parts.Items {
		if err := f.write(&parts.Items[i]); err != nil {
			return false, "", err
		}
	}
	n := len(parts.Items)
	if n == 0 {
		return f.position > 0, parts.ResourceVersion, nil // what was there has gone with the release
	}
	return parts.Items[n-1].Spec.Ended, parts.ResourceVersion, nil
}

// partOf is the part that a change is about. The cache in front of the store wraps what goes to several.
func partOf(change watch.Event) (part *v1alpha1.ReleaseLogPart, ok bool) {
	object := change.Object
	if shared, wrapped := object.(runtime.CacheableObject); wrapped {
		object = shared.GetObject()
	}
	part, ok = object.(*v1alpha1.ReleaseLogPart)
	return part, ok
}

// watch writes the lines that come, until no more will, or until the watch ends.
func (f *follower) watch(ctx context.Context, version string) (over bool, err error) {
	changes, err := f.parts.Watch(ctx, f.selected(version))
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case change, open := <-changes.ResultChan():
			part, ok := partOf(change)
			if !open || !ok {
				return ctx.Err() != nil, nil
			}
			end := part.Spec.First + int64(len(part.Spec.Lines))
			if change.Type == watch.Deleted {
				if end >= f.position {
					return true, nil // the last part goes with the release
				}
				continue
			}
			if err := f.write(part); err != nil {
				return false, err
			}
			if part.Spec.Ended && end == f.position {
				return true, nil
			}
		}
	}
}

// write writes the lines of a part that have not been written yet.
func (f *follower) write(part *v1alpha1.ReleaseLogPart) error {
	if part.Spec.First > f.position {
		if _, err := fmt.Fprintf(f.out, "(%d lines before these are gone: logs have a bound)\n", part.Spec.First-f.position); err != nil {
			return err
		}
		f.position = part.Spec.First
	}
	for i := f.position - part.Spec.First; i < int64(len(part.Spec.Lines)); i++ {
		if line := &part.Spec.Lines[i]; f.wants(line) {
			if _, err := io.WriteString(f.out, shown(line)); err != nil {
				return err
			}
		}
		f.position++
	}
	return nil
}

func (f *follower) wants(line *v1alpha1.ReleaseLogLine) bool {
	if f.options.Stage != "" && f.options.Stage != line.Stage {
		return false
	}
	return f.options.Target == "" || f.options.Target == line.Target || f.options.Target == line.Cluster
}

// shown is a line for people: when, which stage, which target and cluster, and what.
func shown(line *v1alpha1.ReleaseLogLine) string {
	parts := []string{line.Time.UTC().Format(time.RFC3339)}
	if line.Stage != "" {
		parts = append(parts, line.Stage)
	}
	if where := strings.Trim(line.Target+"/"+line.Cluster, "/"); where != "" {
		parts = append(parts, where)
	}
	return text.Line(strings.Join(append(parts, line.Message), " "), mostLine) + "\n"
}
