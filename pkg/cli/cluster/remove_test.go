package cluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// What an admin is told to delete after a removal is all that joining makes, whatever was allowed.
func TestTheCleanupNamesAllThatJoiningMakes(t *testing.T) {
	pieces, err := grants.All("logical", grants.Allowances{
		Kinds: []schema.GroupResource{{Group: "example.com", Resource: "gizmos"}}, PriorityClassesUpTo: ptr.To[int32](1), Volumes: true, Pipelines: true, PodWebhook: &grants.PodWebhook{BaseURL: "https://127.0.0.1:6443"},
	})
	if err != nil {
		t.Fatal(err)
	}
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	o := &RemoveOptions{IOStreams: streams}
	o.printCleanup("logical")
	commands := strings.Split(errOut.String(), "\n")
	for _, piece := range pieces {
		kind, name, namespace := strings.ToLower(piece.Object.GetKind()), piece.Object.GetName(), piece.Object.GetNamespace()
		named := slices.ContainsFunc(commands, func(command string) bool {
			words := strings.Fields(command)
			return len(words) > 3 && slices.Contains(strings.Split(words[2], ","), kind) && words[3] == name &&
				(namespace == "" || strings.Contains(command, "-n "+namespace))
		})
		if !named {
			t.Errorf("the cleanup leaves %s", piece)
		}
	}
}
