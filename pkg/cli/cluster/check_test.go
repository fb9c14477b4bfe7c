package cluster

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

func TestWhatCannotBeReadIsNoDifference(t *testing.T) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	o := NewCheckOptions(streams)
	o.Name = "east"
	findings := []physical.Finding{
		{What: "ClusterRole x"}, {What: "Role x", Unread: "the credential may not read it"}, {What: "Other bindings", Unread: "the credential may not list them"},
	}
	if err := o.report(findings, ""); err != nil {
		t.Errorf("it is told to differ: %v", err)
	}
	for _, want := range []string{"? Role x: the credential may not read it", "? Other bindings", "✓ ClusterRole"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if want := "2 of 3"; !strings.Contains(errOut.String(), want) {
		t.Errorf("it does not say that %q could not be read: %s", want, errOut)
	}
	if err := o.report([]physical.Finding{{What: "ClusterRole x", Differs: []string{"missing"}}}, "manifold cluster join east"); err == nil || !strings.Contains(err.Error(), "manifold cluster join east") {
		t.Errorf("a difference ends with %v", err)
	}
}
