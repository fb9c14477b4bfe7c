package placement_test

import (
	"reflect"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestParseRefusals(t *testing.T) {
	for text, want := range map[string]map[string]placement.Refusal{
		"": nil, `{"east":{"replicas":3,"problem":"refused"}}`: nil, `{"refused":`: nil, `{"east":{"replicas":3}}`: nil,
		`{"east":{"replicas":3,"refused":{"pods":2,"since":"2026-05-01T12:00:00Z","says":"no"}},"west":{"ready":1}}`: {
			"east": {Pods: 2, Since: build.Noon, Says: "no"},
		},
	} {
		if got := placement.ParseRefusals(text); !reflect.DeepEqual(got, want) {
			t.Errorf("of %s got %+v, want %+v", text, got, want)
		}
	}
}
