package releases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

const (
	// mostRefusals bounds how many refusals are told. Who mends those finds the others then.
	mostRefusals = 3
	// mostRefused bounds what is said of them, in bytes.
	mostRefused = 1024
	// trialAgain is when what could not be tried is tried again: nobody tells that a kind is served, or a webhook answers.
	trialAgain = 5 * time.Second
)

// refusedError says why a release cannot begin, however long it waits.
type refusedError struct{ what string }

func (e refusedError) Error() string { return e.what }

// trial asks the server about a revision before anything of it is applied.
type trial struct {
	*Controller
	app     *v1alpha1.Application
	plan    *v1alpha1.ReleasePlan
	release delivery.Release
	// tried are the contents that have been asked about, which targets may have in common.
	tried map[string]bool
}

// run has the server say of each object of a revision, in each target, whether it would be stored, with the rights by which it will be written. It
// returns a refusedError with what is refused, and a waitError where that cannot be told.
func (t trial) run(ctx context.Context, places []delivery.Place) error {
	if err := t.alike(places); err != nil {
		return told(err)
	}
	targets := map[string]bool{}
	var refused []string
	for _, place := range places {
		if targets[place.Target] {
			continue // all clusters of a target get the same
		}
		targets[place.Target] = true
		made, err := t.all(place)
		if err != nil {
			return err
		}
		for _, object := range made {
			if needsAccount(object, made) {
				continue
			}
			why, err := t.try(ctx, object)
			if err != nil {
				t.queue.AddAfter(cache.MetaObjectToName(t.app), trialAgain)
				return waitError{fmt.Sprintf("target %q: try what the revision holds: %s", place.Target, err)}
			}
			if why != "" {
				refused = append(refused, fmt.Sprintf("target %q: %s", place.Target, why))
			}
			if len(refused) == mostRefusals {
				return refusedError{strings.Join(refused, "; ")}
			}
		}
	}
	if len(refused) > 0 {
		return refusedError{strings.Join(refused, "; ")}
	}
	return nil
}

// try says why an object is refused, "" if it is not, or has been tried before. The error says why that is not known.
func (t trial) try(ctx context.Context, object wanted.Object) (refused string, err error) {
	content, err := contentOf(object)
	if err != nil || t.tried[content] {
		return "", err
	}
	t.tried[content] = true
	if why := t.reselected(object); why != "" {
		return why, nil
	}
	stored, answer := t.carrier.Try(ctx, accountOf(t.app), ownerOf(t.app), object)
	if answer == nil && object.Held {
		return t.mutated(object, stored)
	}
	return verdictOf(answer, object.Held)
}

// contentOf is what is tried of an object, which targets may have in common: where it runs is no part of that.
func contentOf(object wanted.Object) (string, error) {
	manifest := object.Manifest.DeepCopy()
	annotations, labels := manifest.GetAnnotations(), manifest.GetLabels()
	delete(annotations, manifold.AnnotationClusters)
	delete(labels, v1alpha1.LabelPlacement)
	manifest.SetAnnotations(annotations)
	manifest.SetLabels(labels)
	content, err := manifest.MarshalJSON()
	if err != nil {
		return "", fmt.Errorf("read %s: %w", object.Key, err)
	}
	return string(content), nil
}

// made is what the revision stands for where it is the only thing that runs, in one cluster of a target.
func (t trial) made(place delivery.Place) (wanted.Wanted, error) {
	part := delivery.Part{Revision: t.release.Revision, Target: place.Target}
	made, err := t.standsFor(delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{place.Cluster: part}}})
	if err == nil && t.app.Spec.Source.Selector != nil {
		err = t.whole(part, made.Objects)
	}
	return made, told(err)
}

func (t trial) standsFor(set delivery.Set) (wanted.Wanted, error) {
	return wanted.Make(t.describe(t.app, t.plan, nil), set, t.release.Revision.Name, t.revisions.contentsIn(t.app.Namespace))
}

// told says of what cannot be made whether it may come.
func told(err error) error {
	switch {
	case errors.Is(err, contents.ErrMissing):
		return waitError{err.Error()}
	case err != nil:
		return refusedError{err.Error()}
	}
	return nil
}

// verdictOf reads the answer to a trial: why an object is refused, or why that is not known. What only a trial is refused for counts for neither, since
// the object is applied later: a webhook that bears no dry run is a bad request, and what an object refers to may be among the others. What clusters hold
// of a revision may never be applied, where the object above shows what another target has. So every answer counts: a webhook that gives no
// reason makes a bad request, too.
func verdictOf(answer error, held bool) (refused string, unknown error) {
	refusal := new(objects.RefusedError)
	switch {
	case answer == nil, !held && (apierrors.IsBadRequest(answer) || apierrors.IsNotFound(answer)):
		return "", nil
	case apierrors.IsNotFound(answer):
		return answer.Error(), nil
	case errors.As(answer, &refusal):
		return answer.Error(), nil
	}
	return "", answer
}

// needsAccount reports whether an object is a Pod that runs as a ServiceAccount which comes with it. The server refuses it until that is there.
func needsAccount(object wanted.Object, among []wanted.Object) bool {
	if object.Group != corev1.GroupName || object.Kind != "Pod" {
		return false
	}
	name, _, _ := unstructured.NestedString(object.Manifest.Object, "spec", "serviceAccountName")
	for _, other := range among {
		if other.Key == (wanted.Key{Group: corev1.GroupName, Kind: "ServiceAccount", Name: name}) {
			return true
		}
	}
	return false
}

func ownerOf(app *v1alpha1.Application) objects.Owner {
	return objects.Owner{Name: app.Name, UID: app.UID, Selected: app.Spec.Source.Selector != nil}
}
