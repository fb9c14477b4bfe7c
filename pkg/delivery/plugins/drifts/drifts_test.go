package drifts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
)

func TestG28WhatAPluginSaysOfDriftIsBoundedAndComparedWithTheQuestion(t *testing.T) {
	many := &drift.TargetDrift{DeployTarget: "dev"}
	for i := range 25 {
		many.Resources = append(many.Resources, &drift.ResourceDrift{Name: fmt.Sprintf("r%02d", 24-i), Kind: drift.ResourceDrift_CHANGED, Details: "password: hunter2"})
	}
	for name, test := range map[string]struct {
		answer *drift.GetDriftResponse
		want   Found
		check  func(*testing.T, Found)
	}{
		"nothing differs": {answer: &drift.GetDriftResponse{Targets: []*drift.TargetDrift{{DeployTarget: "dev"}}}},
		"in each way": {
			answer: &drift.GetDriftResponse{Targets: []*drift.TargetDrift{nil, {DeployTarget: "dev", Resources: []*drift.ResourceDrift{
				nil, {Name: "d", Kind: 77}, {Name: "c", Kind: drift.ResourceDrift_CHANGED}, {Name: "b", Kind: drift.ResourceDrift_EXTRA}, {Name: "a\n\x1b[2J", ResourceType: "page", Kind: drift.ResourceDrift_MISSING},
			}}}},
			want: Found{Count: 4, Differences: []v1alpha1.PluginDifference{
				{Name: "b", Kind: v1alpha1.PluginExtra}, {Name: "c", Kind: v1alpha1.PluginChanged}, {Name: "d", Kind: v1alpha1.PluginDiffers}, {Type: "page", Name: `a ^[[2J`, Kind: v1alpha1.PluginMissing},
			}},
		},
		"nobody says anything":       {answer: nil, want: Found{Wrong: "the plugin does not say how it differs"}},
		"of a place of others alone": {answer: &drift.GetDriftResponse{Targets: []*drift.TargetDrift{{DeployTarget: "prod"}}}, want: Found{Wrong: "the plugin does not say how it differs"}},
		"it cannot be told":          {answer: &drift.GetDriftResponse{Targets: []*drift.TargetDrift{{DeployTarget: "dev", Error: "no\nroute", Resources: many.Resources}}}, want: Found{Wrong: "no route"}},
		"the first of many, in order": {answer: &drift.GetDriftResponse{Targets: []*drift.TargetDrift{many}}, check: func(t *testing.T, found Found) {
			if found.Count != 25 || len(found.Differences) != 20 || found.Differences[0].Name != "r00" || found.Differences[19].Name != "r19" {
				t.Errorf("found %d, first %v", found.Count, found.Differences)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(test.answer, []string{"dev"})
			if len(got) != 1 {
				t.Fatalf("it is about %v", got)
			}
			if test.check != nil {
				test.check(t, got["dev"])
			} else if said, want := fmt.Sprintf("%+v", got["dev"]), fmt.Sprintf("%+v", test.want); said != want {
				t.Errorf("got  %s\nwant %s", said, want)
			}
			if strings.Contains(fmt.Sprintf("%+v", got), "hunter2") {
				t.Error("details are shown, which may be secret")
			}
		})
	}
}
