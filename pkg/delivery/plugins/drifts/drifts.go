// Package drifts asks plugins how two states of an application differ: what is live from what was released, or a revision from the one before. Few plugins
// serve that: those of PipeCD tell of drift by their live state alone. What one says is input from a stranger, and is bounded.
package drifts

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// Bounds of what is kept of an answer.
const (
	mostDifferences = 20
	mostName        = 200
	mostWrong       = 250
)

// Question is about the states of an application at deploy targets of a plugin.
type Question struct {
	Application *v1alpha1.Application
	Targets     []string
	// From is nil for what is live.
	From, To *source.DeploymentSource
}

// Found is what a plugin says of a deploy target.
type Found struct {
	// Differences are the first ones, and Count how many there are.
	Differences []v1alpha1.PluginDifference
	Count       int32
	// Wrong is why nothing can be told, "" if something can.
	Wrong string
}

// Served reports whether a plugin can be asked.
func Served(plugin plugins.Plugin) bool {
	return slices.Contains(plugin.Services, plugins.ServiceDrift)
}

// Ask asks a plugin. What it does not say of a deploy target is not known of it, and what it says of others does not count.
func Ask(ctx context.Context, plugin plugins.Plugin, q Question, options ...grpc.CallOption) (map[string]Found, error) {
	answer, err := drift.NewDriftServiceClient(plugin.Conn).GetDrift(ctx, &drift.GetDriftRequest{
		ApplicationId: deployments.ApplicationID(q.Application), ApplicationName: q.Application.Name, DeployTargets: q.Targets, From: q.From, To: q.To,
	}, options...)
	if err != nil {
		return nil, err
	}
	return read(answer, q.Targets), nil
}

// read is what an answer says of the deploy targets that were asked about.
func read(answer *drift.GetDriftResponse, targets []string) map[string]Found {
	out := map[string]Found{}
	for _, target := range targets {
		out[target] = Found{Wrong: "the plugin does not say how it differs"}
	}
	for _, said := range answer.GetTargets() {
		name := said.GetDeployTarget()
		if _, asked := out[name]; !asked {
			continue
		}
		found := Found{Wrong: text.Line(said.GetError(), mostWrong)}
		if found.Wrong == "" {
			for _, resource := range said.GetResources() {
				if resource != nil {
					found.Differences = append(found.Differences, differenceOf(resource))
				}
			}
			found.Count = int32(len(found.Differences))
			// However the plugin has listed them, what is shown stays the same as long as it is the same.
			slices.SortStableFunc(found.Differences, func(a, b v1alpha1.PluginDifference) int {
				return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
			})
			found.Differences = slices.Clip(found.Differences[:min(len(found.Differences), mostDifferences)])
		}
		out[name] = found
	}
	return out
}

var kinds = map[drift.ResourceDrift_Kind]v1alpha1.PluginDifferenceKind{
	drift.ResourceDrift_MISSING: v1alpha1.PluginMissing, drift.ResourceDrift_EXTRA: v1alpha1.PluginExtra, drift.ResourceDrift_CHANGED: v1alpha1.PluginChanged,
}

// differenceOf leaves the details out, which may be secret.
func differenceOf(resource *drift.ResourceDrift) v1alpha1.PluginDifference {
	return v1alpha1.PluginDifference{
		Type: text.Line(resource.GetResourceType(), mostName), Name: text.Line(resource.GetName(), mostName),
		Kind: cmp.Or(kinds[resource.GetKind()], v1alpha1.PluginDiffers),
	}
}
