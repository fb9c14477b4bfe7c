package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

func resource(id string, health model.ResourceState_HealthStatus, change ...func(*model.ResourceState)) *model.ResourceState {
	out := &model.ResourceState{Id: id, Name: id, ResourceType: "File", HealthStatus: health}
	for _, c := range change {
		c(out)
	}
	return out
}

func TestWhatAPluginSaysOfADeployTarget(t *testing.T) {
	const unknown, fine, ill = model.ResourceState_UNKNOWN, model.ResourceState_HEALTHY, model.ResourceState_UNHEALTHY
	of := func(sync model.ApplicationSyncStatus, reason string, resources ...*model.ResourceState) *livestate.GetLivestateResponse {
		return &livestate.GetLivestateResponse{
			SyncState: &model.ApplicationSyncState{Status: sync, ShortReason: reason}, ApplicationLiveState: &model.ApplicationLiveState{Resources: resources},
		}
	}
	for name, test := range map[string]struct {
		answer *livestate.GetLivestateResponse
		want   string // sync, health, number, names and message
	}{
		"all is well":            {of(model.ApplicationSyncStatus_SYNCED, "ignored", resource("b", fine), resource("a", fine)), "Synced Healthy 2 [a b] "},
		"nothing is said":        {&livestate.GetLivestateResponse{}, "Unknown Unknown 0 [] "},
		"files differ":           {of(model.ApplicationSyncStatus_OUT_OF_SYNC, "a\ndiffers", resource("a", fine)), "OutOfSync Healthy 1 [a] a differs"},
		"it is being deployed":   {of(model.ApplicationSyncStatus_DEPLOYING, "wait"), "Unknown Unknown 0 [] wait"},
		"the file is wrong":      {of(model.ApplicationSyncStatus_INVALID_CONFIG, "no such field"), "Unknown Unknown 0 [] no such field"},
		"one is ill":             {of(model.ApplicationSyncStatus_SYNCED, "", resource("a", fine), resource("z", ill, func(r *model.ResourceState) { r.HealthDescription = "empty" })), "Synced Degraded 2 [z a] File z: empty"},
		"of one nothing is told": {of(model.ApplicationSyncStatus_SYNCED, "", resource("a", unknown), resource("b", fine)), "Synced Healthy 2 [a b] "},
		"one is of another place": {
			of(model.ApplicationSyncStatus_SYNCED, "", resource("a", fine, func(r *model.ResourceState) { r.DeployTarget = "dev" }), resource("b", ill, func(r *model.ResourceState) { r.DeployTarget = "prod" })),
			"Synced Healthy 1 [a] ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Status("toy", "dev", test.answer)
			names := []string{}
			for _, r := range got.Resources {
				names = append(names, r.Name)
			}
			if said := fmt.Sprintf("%s %s %d %v %s", got.Sync, got.Health, got.ResourceCount, names, got.Message); said != test.want || got.Plugin != "toy" || got.DeployTarget != "dev" {
				t.Errorf("%s\nwant %s", said, test.want)
			}
		})
	}
}

func TestWhatAPluginSaysIsBounded(t *testing.T) {
	answer := &livestate.GetLivestateResponse{ApplicationLiveState: &model.ApplicationLiveState{}, SyncState: &model.ApplicationSyncState{Reason: strings.Repeat("x", 10_000)}}
	for range 1000 {
		answer.ApplicationLiveState.Resources = append(answer.ApplicationLiveState.Resources, &model.ResourceState{
			Id: strings.Repeat("i", 10_000), Name: "a\x1b[31m", ParentIds: make([]string, 1000), HealthDescription: strings.Repeat("d", 10_000), HealthStatus: 99,
		}, nil)
	}
	got := Status("toy", "dev", answer)
	if len(got.Resources) != mostResources || got.ResourceCount != 1000 || len(got.Message) > mostSaid || got.Health != v1alpha1.HealthUnknown {
		t.Errorf("%d of %d resources, health %s, message %.50s", len(got.Resources), got.ResourceCount, got.Health, got.Message)
	}
	if r := got.Resources[0]; len(r.ID) > mostName || len(r.Message) > mostName || len(r.Parents) > mostParents || strings.Contains(r.Name, "\x1b") {
		t.Errorf("a resource is %.300q", fmt.Sprint(r))
	}
}

func TestWhatIsShownOfManyDeployTargetsFitsIntoOneStatus(t *testing.T) {
	for targets, want := range map[int]int{0: 0, 1: mostResources, 10: mostResources, 40: 5, 500: 0} {
		all := make([]v1alpha1.PluginTargetStatus, targets)
		for i := range all {
			all[i].Resources, all[i].ResourceCount = make([]v1alpha1.PluginResource, mostResources), mostResources
		}
		fit(all)
		for _, one := range all {
			if len(one.Resources) != want || one.ResourceCount != mostResources {
				t.Fatalf("of %d targets %d resources are shown of each, of %d, want %d", targets, len(one.Resources), one.ResourceCount, want)
			}
		}
	}
}
