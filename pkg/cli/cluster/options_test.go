package cluster

import (
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestJoinValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*JoinOptions)
		want   string
	}{
		"a plain name is fine":                   {change: func(*JoinOptions) {}},
		"no wait needs no timeout":               {change: func(o *JoinOptions) { o.Wait, o.Timeout = false, 0 }},
		"a label as Kubernetes takes it is fine": {change: func(o *JoinOptions) { o.Labels = map[string]string{"topology.kubernetes.io/region": "eu"} }},
		"capitals are no part of a name":         {change: func(o *JoinOptions) { o.Name = "East" }, want: `"East" is not a valid cluster name`},
		"dots are no part of a name":             {change: func(o *JoinOptions) { o.Name = "eu.east" }, want: "is not a valid cluster name"},
		"a name has a length":                    {change: func(o *JoinOptions) { o.Name = strings.Repeat("a", 64) }, want: "63"},
		"a label's value has its rules":          {change: func(o *JoinOptions) { o.Labels = map[string]string{"region": "eu west"} }, want: "--label"},
		"waiting for no time is refused":         {change: func(o *JoinOptions) { o.Timeout = 0 }, want: "--timeout"},
		"a network with its addresses is fine":   {change: func(o *JoinOptions) { o.Network, o.PodCIDRs = "mesh", []string{"10.1.0.0/16"} }},
		"a network has the name of a label":      {change: func(o *JoinOptions) { o.Network = "mesh.eu" }, want: "--network"},
		"addresses are ranges":                   {change: func(o *JoinOptions) { o.PodCIDRs = []string{"10.1.0.1"} }, want: "--pod-cidr"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewJoinOptions(genericiooptions.NewTestIOStreamsDiscard())
			o.Name = "east"
			test.change(o)
			checkRefusal(t, o.Validate(), test.want)
		})
	}
}

func TestRemoveValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*RemoveOptions)
		want   string
	}{
		"the defaults are fine":                      {change: func(*RemoveOptions) {}},
		"force and orphan exclude each other":        {change: func(o *RemoveOptions) { o.Force, o.Orphan = true, true }, want: "exclude each other"},
		"the rights go after what they clean":        {change: func(o *RemoveOptions) { o.Kubeconfig, o.Wait = "file", false }, want: "needs --wait"},
		"a context is one of a file":                 {change: func(o *RemoveOptions) { o.Context = "east" }, want: "--cluster-context needs --cluster-kubeconfig"},
		"waiting for no time is refused":             {change: func(o *RemoveOptions) { o.Timeout = -time.Second }, want: "--timeout"},
		"force may clean what joining made as well":  {change: func(o *RemoveOptions) { o.Force, o.Kubeconfig = true, "file" }},
		"orphan may clean what joining made as well": {change: func(o *RemoveOptions) { o.Orphan, o.Kubeconfig = true, "file" }},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewRemoveOptions(genericiooptions.NewTestIOStreamsDiscard())
			o.Name = "east"
			test.change(o)
			checkRefusal(t, o.Validate(), test.want)
		})
	}
}

func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a refusal with %q", err, want)
	}
}
