package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// unreadableError says why a pipeline does not read as one.
type unreadableError struct{ error }

// client reaches the pipelines of a namespace.
func (c *Controller) client(k key) dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{Group: k.group, Version: weave.Version, Resource: weave.Resource}).Namespace(k.Namespace)
}

// pipelineOf returns a pipeline as it is now, nil if it is not there. It is read when it has changed.
func (c *Controller) pipelineOf(ctx context.Context, k key) (*weave.Pipeline, error) {
	o, _ := c.Kinds.Get(schema.GroupKind{Group: k.group, Kind: weave.Kind}, k.Namespace, k.Name)
	if o == nil {
		return nil, nil
	}
	if m := c.known.of(k); m != nil && m.pipeline.UID == o.UID && m.pipeline.ResourceVersion == o.ResourceVersion {
		return m.pipeline, nil
	}
	found, err := c.client(k).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	return decode(found)
}

// decode reads a pipeline. What can be told of one whose spec does not read is told.
func decode(o *unstructured.Unstructured) (*weave.Pipeline, error) {
	out, err := weave.Read(o)
	if err == nil {
		return out, nil
	}
	rest := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": o.Object["metadata"], "status": o.Object["status"]}
	out, other := weave.Read(&unstructured.Unstructured{Object: rest})
	if other != nil {
		return nil, errors.Join(err, other)
	}
	return out, unreadableError{err}
}

// ownerOf is by which a pipeline wants to see what clusters have.
func ownerOf(p *weave.Pipeline) string { return string(p.UID) }

// sync shows what the targets of a pipeline run.
func (c *Controller) sync(ctx context.Context, k key) error {
	pipeline, err := c.pipelineOf(ctx, k)
	unreadable := unreadableError{}
	switch {
	case errors.As(err, &unreadable):
		return c.tell(ctx, k, pipeline, refused(unreadable.Error()))
	case err != nil:
		return err
	case pipeline == nil || pipeline.DeletionTimestamp != nil:
		if m := c.known.of(k); m != nil {
			c.Sights.Want(ownerOf(m.pipeline), nil)
		}
		c.known.forget(k)
		return nil
	}
	if m := c.known.of(k); m != nil && m.pipeline.UID != pipeline.UID {
		c.Sights.Want(ownerOf(m.pipeline), nil)
	}
	m := c.known.keep(k, pipeline)
	now := c.Clock.Now()
	l := &look{Controller: c, ctx: ctx, pipeline: pipeline, authors: weave.Authors(pipeline), parts: map[string]parts{}, patient: m.patient(now, patience)}
	l.want()
	told := l.all()
	if !l.waits {
		m.waits = time.Time{}
	} else {
		if m.waits.IsZero() {
			m.waits = now
		}
		if m.patient(now, patience) {
			c.queue.AddAfter(k, first)
		} else {
			l.again = true
		}
		if l.holds && m.patient(now, first) {
			return l.failed()
		}
	}
	if l.again {
		c.queue.AddAfter(k, lookAgain)
	}
	return errors.Join(c.tell(ctx, k, pipeline, told), l.failed())
}

// patient reports whether what is about to be known has not been waited for that long yet.
func (m *memory) patient(now time.Time, long time.Duration) bool {
	return m.waits.IsZero() || now.Sub(m.waits) < long
}

// all looks at all targets.
func (l *look) all() told {
	out := told{environments: map[string][]weave.TargetStatus{}, denials: map[string]denial{}}
	for i, e := range l.pipeline.Spec.Environments {
		out.denials[e.Name] = l.denial(i)
		var last []weave.TargetStatus
		if status := l.pipeline.Status.Environments[e.Name]; status != nil {
			last = status.Targets
		}
		targets := make([]weave.TargetStatus, 0, len(e.Targets))
		for _, t := range e.Targets {
			status, silent := l.target(t, lastOf(last, t))
			if status.Error != "" {
				out.troubles = append(out.troubles, trouble{environment: e.Name, target: status, silent: silent})
			}
			targets = append(targets, status)
			out.targets++
		}
		out.environments[e.Name] = targets
	}
	fit(out.environments)
	return out
}

// lastOf finds what was told of a target before, nil if nothing was.
func lastOf(last []weave.TargetStatus, t weave.Target) *weave.TargetStatus {
	for i := range last {
		if placeOf(weave.Target{Namespace: last[i].Namespace, ClusterRef: last[i].ClusterRef}) == placeOf(t) {
			return &last[i]
		}
	}
	return nil
}

// tell writes what is told of a pipeline, where it differs from what was.
func (c *Controller) tell(ctx context.Context, k key, pipeline *weave.Pipeline, now told) error {
	change := now.change(pipeline, c.Clock.Now())
	if change == nil {
		return nil
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	stored, err := c.client(k).Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		c.queue.AddAfter(k, settle) // somebody else has written meanwhile, and the watch is about to show it
		c.known.outdated(k)
		return nil
	case err != nil:
		return fmt.Errorf("write the status of %s: %w", k, err)
	}
	if next, err := decode(stored); err == nil {
		c.known.keep(k, next)
	}
	return nil
}
