// Package planner says how a revision is released, by which stages, to which clusters, and which of several releases runs.
package planner

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// The ways to release a revision.
const (
	QuickSync = string(v1alpha1.StrategyQuickSync)
	Pipeline  = string(v1alpha1.StrategyPipeline)
)

// Change is what a strategy depends on.
type Change struct {
	// Asked is the strategy that somebody has asked for, if any.
	Asked string
	// Stages are those of the application's pipeline.
	Stages []delivery.Stage
	// Always sends every change through the pipeline. PipelineOn and QuickOn are regular expressions: what the message of a commit that they match
	// asks for.
	Always              bool
	PipelineOn, QuickOn string
	Message             string
	// Old are the objects of the last successful revision and New those of this one, by target. There is no last one if Old is nil.
	Old, New map[string][]*unstructured.Unstructured
	// Opaque says that the objects tell nothing: plugins alone deliver the application.
	Opaque bool
	// Opinions are what plugins say of the change.
	Opinions []Opinion
}

// ChangeOf is what of an application, its stages and the origin of a revision the strategy depends on. The origin may be nil.
func ChangeOf(spec *v1alpha1.ApplicationSpec, stages []delivery.Stage, origin *v1alpha1.Origin) Change {
	out := Change{Stages: stages, Opaque: spec.PluginsOnly}
	if origin != nil {
		out.Message = origin.Message
	}
	if spec.Planner != nil {
		out.Always = spec.Planner.AlwaysUsePipeline
		if matcher := spec.Planner.CommitMatcher; matcher != nil {
			out.PipelineOn, out.QuickOn = matcher.Pipeline, matcher.QuickSync
		}
	}
	return out
}

// Opinion is what a plugin says of a change.
type Opinion struct {
	Plugin string
	// Pipeline says that the change needs the pipeline.
	Pipeline bool
	Why      string
}

// Strategy returns how a change is released, and why.
func Strategy(c Change) (strategy, reason string, err error) {
	if strategy, reason, err := Early(c); strategy != "" || err != nil {
		return strategy, reason, err
	}
	if !c.Opaque {
		for _, target := range slices.Sorted(maps.Keys(c.New)) {
			old, had := c.Old[target]
			if !had {
				continue
			}
			if reason := progressive(old, c.New[target]); reason != "" {
				return Pipeline, reason, nil
			}
		}
	}
	for _, opinion := range c.Opinions {
		if opinion.Pipeline {
			return Pipeline, fmt.Sprintf("plugin %q: %s", opinion.Plugin, cmp.Or(opinion.Why, "it needs the pipeline")), nil
		}
	}
	var reasons []string
	if !c.Opaque {
		reasons = append(reasons, "neither a pod template nor a ConfigMap or Secret has changed")
	}
	for _, opinion := range c.Opinions {
		reasons = append(reasons, fmt.Sprintf("plugin %q: %s", opinion.Plugin, cmp.Or(opinion.Why, "it does not need the pipeline")))
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "no plugin asks for the pipeline")
	}
	return QuickSync, strings.Join(reasons, "; "), nil
}

// Early returns how a change is released where that does not depend on what has changed, and why. Otherwise both are empty.
func Early(c Change) (strategy, reason string, err error) {
	switch {
	case c.Asked == Pipeline && len(c.Stages) == 0:
		return "", "", fmt.Errorf("strategy %s: the application has no pipeline", Pipeline)
	case c.Asked == Pipeline || c.Asked == QuickSync:
		return c.Asked, "it was asked for", nil
	case c.Asked != "":
		return "", "", fmt.Errorf("there is no strategy %q: use %s or %s", c.Asked, QuickSync, Pipeline)
	case len(c.Stages) == 0:
		return QuickSync, "the application has no pipeline", nil
	case c.Always:
		return Pipeline, "the application always uses its pipeline", nil
	}
	for _, by := range []struct{ field, pattern, strategy string }{{"pipeline", c.PipelineOn, Pipeline}, {"quickSync", c.QuickOn, QuickSync}} {
		if by.pattern == "" {
			continue
		}
		matcher, err := regexp.Compile(by.pattern)
		if err != nil {
			return "", "", fmt.Errorf("planner.commitMatcher.%s: %w", by.field, err)
		}
		if matcher.MatchString(c.Message) {
			return by.strategy, fmt.Sprintf("the message of the commit matches %q", by.pattern), nil
		}
	}
	if c.Old == nil {
		return QuickSync, "it is the first release", nil
	}
	return "", "", nil
}

// progressive says what of a target's objects calls for a pipeline, "" if nothing does. Replicas, Services and the like do not.
func progressive(old, now []*unstructured.Unstructured) string {
	before, after := watched(old), watched(now)
	for _, key := range slices.Sorted(maps.Keys(after)) {
		was, had := before[key]
		switch {
		case !had:
			return fmt.Sprintf("%s is new", key)
		case after[key].pods && !equality.Semantic.DeepEqual(was.content, after[key].content):
			return fmt.Sprintf("the pod template of %s has changed", key)
		case !equality.Semantic.DeepEqual(was.content, after[key].content):
			return fmt.Sprintf("%s has changed", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; !stays {
			return fmt.Sprintf("%s is gone", key)
		}
	}
	return ""
}

// content is what of an object pods are made of.
type content struct {
	pods    bool
	content map[string]any
}

// watched are the objects that pods are made of: those with a pod template, ConfigMaps and Secrets.
func watched(objects []*unstructured.Unstructured) map[string]content {
	out := map[string]content{}
	for _, object := range objects {
		key := fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
		template, has, err := unstructured.NestedMap(object.Object, "spec", "template")
		_, pods := template["spec"].(map[string]any)
		switch kind := object.GroupVersionKind(); {
		case err == nil && has && pods:
			out[key] = content{pods: true, content: template}
		case kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret"):
			data := map[string]any{}
			for _, field := range []string{"data", "binaryData", "stringData"} {
				data[field] = object.Object[field]
			}
			out[key] = content{content: data}
		}
	}
	return out
}

// Stages returns those of a release: those of the pipeline, or one that brings the revision to all targets at once. Each has an ID.
func Stages(strategy string, pipeline []delivery.Stage) []delivery.Stage {
	if strategy != Pipeline {
		return []delivery.Stage{{ID: "sync", Name: delivery.StageSync}}
	}
	out := slices.Clone(pipeline)
	for i := range out {
		if out[i].ID == "" {
			out[i].ID = fmt.Sprintf("stage-%d", i)
		}
	}
	return out
}
