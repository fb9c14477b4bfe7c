// Package trials asks what the server would say to a revision, before anything of it is applied.
package trials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// mostRefusals bounds how many refusals are told. Who mends those finds the others then.
const mostRefusals = 3

// Trial asks the server about a revision before anything of it is applied.
type Trial struct {
	// Application is what is to have the revision, and Release how it comes to that.
	Application wanted.Application
	Release     delivery.Release
	// Contents returns what revisions hold, and Hash the hash of that, "" if it is not known.
	Contents wanted.Contents
	Hash     func(delivery.Part) string
	// Present returns what the logical cluster has, nil for nothing.
	Present func(wanted.Key) metav1.Object
	// Server says what it would make of an object.
	Server func(context.Context, wanted.Object) (objects.Trial, error)
	// Complete gives a typed object the defaults that the API server gives it. It may be nil.
	Complete func(runtime.Object)
	// UID is that of what is released, of which Memory has what was admitted so far, and Clock tells how long the trial takes.
	UID    types.UID
	Memory *Memory
	Clock  clock.PassiveClock

	// tried are the hashes of contents that have been asked about, which targets may have in common.
	tried map[[sha256.Size]byte]bool
	until time.Time
}

// Run has the server say of each object of a revision, in each target, whether it would be stored, with the rights by which it will be written. It
// returns what is refused, "" for nothing. The error says why that is not known: it is contents.ErrMissing while something of the revision may come yet, and
// ErrUnfinished if there is more to try than time.
func (t Trial) Run(ctx context.Context, places []delivery.Place) (refused string, unknown error) {
	t.tried = map[[sha256.Size]byte]bool{}
	now := t.Clock.Now()
	t.Memory.about(t.UID, now)
	t.until = now.Add(atATime)
	if err := t.alike(places); err != nil {
		return told(err)
	}
	pins, err := t.pins(places)
	if err != nil {
		return told(err)
	}
	targets := map[string]bool{}
	var refusals []string
	for _, place := range places {
		if targets[place.Target] {
			continue // all clusters of a target get the same
		}
		targets[place.Target] = true
		made, err := t.all(place)
		if err != nil {
			return told(err)
		}
		found, err := t.ask(ctx, made, pins)
		for _, why := range found[:min(len(found), mostRefusals-len(refusals))] {
			refusals = append(refusals, fmt.Sprintf("target %q: %s", place.Target, why))
		}
		switch {
		case len(refusals) == mostRefusals:
			return strings.Join(refusals, "; "), nil
		case errors.Is(err, ErrUnfinished):
			return strings.Join(refusals, "; "), err
		case err != nil:
			return "", fmt.Errorf("target %q: try what the revision holds: %w", place.Target, err)
		}
	}
	return strings.Join(refusals, "; "), nil
}

// asking is how many objects the server is asked about at a time.
const asking = 8

// asked is what came of asking about an object.
type asked struct {
	admitted, passed bool
	refused          string
	err              error
}

// ask says why objects of a target are refused that were not tried before, each once. The error says why that is not known of the others.
func (t Trial) ask(ctx context.Context, made []wanted.Object, pins map[wanted.Key]string) (refused []string, err error) {
	untried, hashes, err := t.untried(made, pins)
	if err != nil {
		return nil, err
	}
	answers, defined := make([]asked, len(untried)), defined(made)
	var refusals atomic.Int32
	work.SideBySide(ctx, asking, len(untried), func(i int) (goOn bool) {
		if !t.Clock.Now().Before(t.until) {
			return false
		}
		why, err := t.try(ctx, untried[i])
		if undefined := new(objects.UndefinedError); errors.As(err, &undefined) && defined[undefined.Kind.GroupKind()] {
			answers[i].passed = true // there is nobody to ask until its definition is applied, which comes first
			return true
		}
		answers[i] = asked{admitted: why == "" && err == nil, refused: why, err: err}
		return err == nil && (why == "" || refusals.Add(1) < mostRefusals)
	})
	unanswered := false
	for i, answer := range answers {
		switch {
		case answer.err != nil:
			return refused, answer.err
		case answer.refused != "":
			refused = append(refused, answer.refused)
		case answer.admitted:
			t.Memory.admitted[hashes[i]] = true
		case !answer.passed:
			unanswered = true
		}
	}
	if err := ctx.Err(); err != nil {
		return refused, err
	}
	if unanswered {
		return refused, t.Memory.unfinished()
	}
	return refused, nil
}

// untried are those of some objects whose content was not tried before, with the hashes of that.
func (t Trial) untried(made []wanted.Object, pins map[wanted.Key]string) (out []wanted.Object, hashes [][sha256.Size]byte, err error) {
	for _, object := range made {
		if needsAccount(object, made) {
			continue
		}
		object = pinned(object, pins)
		content, err := contentOf(object)
		if err != nil {
			return nil, nil, err
		}
		if object.Variant == delivery.Primary { // copies are tried as one cluster has them
			content += "\x00" + object.Manifest.GetAnnotations()[manifold.AnnotationClusters]
		}
		hash := sha256.Sum256([]byte(content))
		if !t.tried[hash] && !t.Memory.admitted[hash] {
			t.tried[hash] = true
			out, hashes = append(out, object), append(hashes, hash)
		}
	}
	return out, hashes, nil
}

// try has the server say whether it would store an object, and says why not. The error says why that is not known.
func (t Trial) try(ctx context.Context, object wanted.Object) (refused string, err error) {
	if why := t.reselected(object); why != "" {
		return why, nil
	}
	stored, answer := t.Server(ctx, object)
	if answer == nil && object.Held {
		return t.mutated(object, stored)
	}
	refused, err = verdictOf(answer, object.Held)
	if refused != "" && !t.Application.Rights && apierrors.IsForbidden(answer) && foreign(object) {
		refused += ": name a ServiceAccount that may write it in spec.serviceAccountName"
	}
	return refused, err
}

// foreign reports whether an object is of a kind that delivery has no right to write by itself.
func foreign(object wanted.Object) bool {
	kind := object.Manifest.GroupVersionKind()
	return !scheme.Scheme.Recognizes(kind) && kind.GroupKind() != traffic.HTTPRouteKind.GroupKind()
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
func (t Trial) made(place delivery.Place) (wanted.Wanted, error) {
	part := delivery.Part{Revision: t.Release.Revision, Target: place.Target}
	made, err := t.standsFor(delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{place.Cluster: part}}})
	if err == nil && t.Application.Selected {
		err = t.whole(part, made.Objects)
	}
	return made, err
}

func (t Trial) standsFor(set delivery.Set) (wanted.Wanted, error) {
	return wanted.Make(t.Application, set, t.Release.Revision.Name, t.Contents)
}

// told says of what cannot be made that it is refused, or that it is not known yet.
func told(err error) (refused string, unknown error) {
	if errors.Is(err, contents.ErrMissing) {
		return "", err
	}
	return err.Error(), nil
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

// defined are the custom kinds whose definitions are among objects.
func defined(among []wanted.Object) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, object := range among {
		if kind, is := wanted.Defines(object.Manifest); is {
			out[kind] = true
		}
	}
	return out
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
