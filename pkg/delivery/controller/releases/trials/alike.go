package trials

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// copied is what is known of the copies that stages make of one variant: who has which object first.
type copied map[wanted.Key]struct{ target, content string }

// alike refuses stages that make one object differently from target to target but for its replicas. All of its clusters hold a copy as it stands, so some
// would get what is meant for others: the Service of a copy, which has one name everywhere, or what two revisions have of a baseline.
func (t Trial) alike(places []delivery.Place) error {
	known := map[string]copied{}
	for i, stage := range t.Release.Stages {
		variant := delivery.Canary
		switch stage.Name {
		case delivery.StageBaselineRollout:
			variant = delivery.Baseline
		case delivery.StageCanaryClean, delivery.StageBaselineClean, delivery.StageSync:
			if len(stage.Targets) == 0 {
				clear(known)
			}
		}
		if stage.Copy == nil {
			continue
		}
		if known[variant] == nil {
			known[variant] = copied{}
		}
		if err := t.alikeIn(fmt.Sprintf("spec.pipeline.stages[%d]", i), stage, variant, known[variant], places); err != nil {
			return err
		}
	}
	return nil
}

// alikeIn does that for one stage, at a path.
func (t Trial) alikeIn(path string, stage delivery.Stage, name string, known copied, places []delivery.Place) error {
	seen := map[string]bool{}
	for _, place := range places {
		part, has := t.copyOf(name, place)
		hash := t.Hash(part)
		if !has || len(stage.Targets) > 0 && !slices.Contains(stage.Targets, place.Target) || seen[hash] {
			continue
		}
		seen[hash] = hash != ""
		variant := stage.Variant(name)
		variant.Clusters = map[string]delivery.Part{place.Cluster: part}
		made, err := t.standsFor(delivery.Set{name: variant})
		if errors.Is(err, copies.ErrNothing) {
			continue // the stage leaves it out
		}
		if err != nil {
			return fmt.Errorf("target %q: %s.with: %w", place.Target, path, err)
		}
		for _, object := range made.Objects {
			if object.Variant == v1alpha1.AllVariants {
				continue // it is no copy's
			}
			object.Manifest = object.Manifest.DeepCopy()
			unstructured.RemoveNestedField(object.Manifest.Object, "spec", "replicas")
			content, err := contentOf(object)
			if err != nil {
				return err
			}
			first, there := known[object.Key]
			if there && first.content != content {
				return fmt.Errorf("%s.targets: the %s has %s, which is not the same for target %q as for target %q, and all clusters have the same: "+
					"name one of them, or none that differ", path, name, object.Key, place.Target, first.target)
			}
			if !there {
				known[object.Key] = struct{ target, content string }{place.Target, content}
			}
		}
	}
	return nil
}

// copyOf is what a copy is made of in a place: the revision that is released or, for a baseline, the one that runs.
func (t Trial) copyOf(variant string, place delivery.Place) (delivery.Part, bool) {
	if variant != delivery.Baseline {
		return delivery.Part{Revision: t.Release.Revision, Target: place.Target}, true
	}
	before := t.Release.Current
	if t.Release.Stable != nil {
		before = *t.Release.Stable
	}
	part, has := before.Part(delivery.Primary, place.Cluster)
	return delivery.Part{Revision: part.Revision, Target: part.Target}, has
}

// Copies are the objects that stages make as copies in some places, which other stages take away. What cannot be made is left out.
func (t Trial) Copies(places []delivery.Place) []wanted.Key {
	var out []wanted.Key
	for _, stage := range t.Release.Stages {
		name := delivery.Canary
		if stage.Name == delivery.StageBaselineRollout {
			name = delivery.Baseline
		}
		for _, place := range places {
			part, has := t.copyOf(name, place)
			if stage.Copy == nil || !has || len(stage.Targets) > 0 && !slices.Contains(stage.Targets, place.Target) {
				continue
			}
			variant := stage.Variant(name)
			variant.Clusters = map[string]delivery.Part{place.Cluster: part}
			made, err := t.standsFor(delivery.Set{name: variant})
			if err != nil {
				continue
			}
			for _, object := range made.Objects {
				if object.Variant == name && !slices.Contains(out, object.Key) {
					out = append(out, object.Key)
				}
			}
		}
	}
	return out
}
