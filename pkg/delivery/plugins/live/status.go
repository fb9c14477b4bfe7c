package live

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
)

// Bounds of what is shown of what a plugin has found in a deploy target.
const (
	mostResources = 20
	// mostInAll bounds what is shown of all deploy targets of an application, which is kept in one status.
	mostInAll   = 200
	mostParents = 5
	mostName    = 200
)

// Status is what a plugin has answered about a deploy target. What it says of others does not count.
func Status(plugin, target string, answer *livestate.GetLivestateResponse) v1alpha1.PluginTargetStatus {
	out := v1alpha1.PluginTargetStatus{Plugin: plugin, DeployTarget: target, Sync: v1alpha1.SyncUnknown}
	of := answer.GetSyncState()
	switch of.GetStatus() {
	case model.ApplicationSyncStatus_SYNCED:
		out.Sync = v1alpha1.Synced
	case model.ApplicationSyncStatus_OUT_OF_SYNC:
		out.Sync = v1alpha1.OutOfSync
	}
	if out.Sync != v1alpha1.Synced {
		out.Message = text.Line(cmp.Or(of.GetShortReason(), of.GetReason()), mostSaid)
	}
	healths := []v1alpha1.HealthStatus{}
	for _, found := range answer.GetApplicationLiveState().GetResources() {
		if found == nil || found.DeployTarget != "" && found.DeployTarget != target {
			continue
		}
		resource := resourceOf(found)
		healths = append(healths, resource.Health)
		out.Resources = append(out.Resources, resource)
		if resource.Health == v1alpha1.Degraded && out.Message == "" {
			out.Message = text.Line(cmp.Or(resource.Type, "resource")+" "+cmp.Or(resource.Name, resource.ID)+": "+cmp.Or(resource.Message, "it is not healthy"), mostSaid)
		}
	}
	out.Health, out.ResourceCount = state.Health(healths), int32(len(out.Resources))
	// Those that are not well come first: they are what somebody looks for.
	slices.SortStableFunc(out.Resources, func(a, b v1alpha1.PluginResource) int {
		return cmp.Or(cmp.Compare(well(a), well(b)), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	out.Resources = slices.Clip(out.Resources[:min(len(out.Resources), mostResources)])
	return out
}

// fit shows fewer resources of each deploy target where there are many of these. How many there are is told all the same.
func fit(all []v1alpha1.PluginTargetStatus) {
	for i := range all {
		found := all[i].Resources
		all[i].Resources = slices.Clip(found[:min(len(found), mostInAll/len(all))])
	}
}

// addDrift adds what a plugin says that differs from what was released, or why it does not say that. What it says to be in sync and to differ as well is not in
// sync.
func addDrift(status *v1alpha1.PluginTargetStatus, differences []v1alpha1.PluginDifference, count int32, wrong string) {
	switch {
	case wrong != "":
		if status.Sync == v1alpha1.Synced {
			status.Sync = v1alpha1.SyncUnknown
		}
		status.Message = text.Line(cmp.Or(status.Message, wrong), mostSaid)
		return
	case count > 0:
		status.Sync = v1alpha1.OutOfSync
		status.Message = cmp.Or(status.Message, fmt.Sprintf("resources that differ from what was released: %d", count))
	case status.Sync == v1alpha1.SyncUnknown && status.Message == "":
		status.Sync = v1alpha1.Synced
	}
	status.Differences, status.DifferenceCount = differences, count
}

func well(resource v1alpha1.PluginResource) int {
	if resource.Health == v1alpha1.Degraded {
		return 0
	}
	return 1
}

func resourceOf(found *model.ResourceState) v1alpha1.PluginResource {
	out := v1alpha1.PluginResource{
		ID: text.Line(found.Id, mostName), Type: text.Line(found.ResourceType, mostName), Name: text.Line(found.Name, mostName),
		Message: text.Line(found.HealthDescription, mostName), Health: v1alpha1.HealthUnknown,
	}
	switch found.HealthStatus {
	case model.ResourceState_HEALTHY:
		out.Health = v1alpha1.Healthy
	case model.ResourceState_UNHEALTHY:
		out.Health = v1alpha1.Degraded
	}
	for _, parent := range found.ParentIds[:min(len(found.ParentIds), mostParents)] {
		out.Parents = append(out.Parents, text.Line(parent, mostName))
	}
	return out
}
