package trials

import (
	"errors"
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// all are the objects to try in a target: those of the revision, and the copies that stages patch. Other copies are what the revision is.
func (t Trial) all(place delivery.Place) ([]wanted.Object, error) {
	made, err := t.made(place)
	if err != nil {
		return nil, err
	}
	if made.Unrouted != "" {
		return nil, fmt.Errorf("target %q: %s", place.Target, made.Unrouted)
	}
	out := made.Objects
	for _, stage := range t.Release.Stages {
		if stage.Copy == nil || len(stage.Copy.Patches) == 0 || len(stage.Targets) > 0 && !slices.Contains(stage.Targets, place.Target) {
			continue
		}
		patched, err := t.patched(stage, place)
		if err != nil && !errors.Is(err, copies.ErrNothing) {
			return nil, fmt.Errorf("target %q: stage %s: %w", place.Target, stage.ID, err)
		}
		out = append(out[:len(out):len(out)], patched...)
	}
	return out, nil
}

// patched are the copies that a stage would make in one cluster of a target.
func (t Trial) patched(stage delivery.Stage, place delivery.Place) ([]wanted.Object, error) {
	variant := stage.Variant(delivery.Canary)
	variant.Clusters = map[string]delivery.Part{place.Cluster: {Revision: t.Release.Revision, Target: place.Target}}
	made, err := t.standsFor(delivery.Set{delivery.Canary: variant})
	return made.Objects, err
}

// reselected says why a workload that is there cannot become what a revision has, "" if it can as far as its selector goes: that of one which is there
// cannot be changed.
func (t Trial) reselected(object wanted.Object) string {
	present := t.Present(object.Key)
	if present == nil || !object.Workload || present.GetDeletionTimestamp() != nil {
		return ""
	}
	live, err := contentNow(present)
	if err != nil {
		return "" // the server says what is wrong
	}
	options := t.Application.Copies
	has, wants := copies.Selects(live, options), copies.Selects(object.Manifest, options)
	if has == wants || wants == "" {
		return ""
	}
	label, _ := options.Selecting(delivery.Primary)
	return fmt.Sprintf("%s: spec.selector.matchLabels[%s]: the revision has it as %q, as addVariantLabelToSelector or the manifest says, and the selector of a %s that is there "+
		"cannot be changed: take that back, or delete the %s, whose pods end by that, and release again", object.Key, label, wants, object.Kind, object.Kind)
}
