package planning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

// previewed writes previews in a line.
func previewed(previews []v1alpha1.PluginPreview) string {
	var out []string
	for _, p := range previews {
		said := fmt.Sprintf("%s %s %s ", p.Plugin, p.DeployTarget, p.Summary)
		switch {
		case p.Unsupported:
			said += "unsupported"
		case p.Unknown:
			said += "unknown"
		default:
			said += fmt.Sprint(p.NoChange)
		}
		for _, of := range p.Differences {
			said += fmt.Sprintf(" %s:%s", of.Kind, of.Name)
		}
		out = append(out, "{"+said+"}")
	}
	return "[" + strings.Join(out, " ") + "]"
}

func TestG21PluginsTellWhatAReleaseWouldChangeWithoutOne(t *testing.T) {
	says := func(*planpreview.GetPlanPreviewRequest) (*planpreview.GetPlanPreviewResponse, error) {
		return &planpreview.GetPlanPreviewResponse{Results: []*planpreview.PlanPreviewResult{{DeployTarget: "dev", Summary: "1 added"}}}, nil
	}
	drifts := func(in *drift.GetDriftRequest) (*drift.GetDriftResponse, error) {
		if in.From.GetCommitHash() != "web-v1" || in.To.GetCommitHash() != "web-v2" || in.ApplicationId != "a" || len(in.DeployTargets) != 1 {
			return nil, grpcstatus.Error(codes.Internal, "this is not what was to be asked")
		}
		return &drift.GetDriftResponse{Targets: []*drift.TargetDrift{{DeployTarget: "dev", Resources: []*drift.ResourceDrift{{Name: "page", Kind: drift.ResourceDrift_MISSING}}}}}, nil
	}
	same := func(*drift.GetDriftRequest) (*drift.GetDriftResponse, error) {
		return &drift.GetDriftResponse{Targets: []*drift.TargetDrift{{DeployTarget: "dev"}}}, nil
	}
	broken := func(*drift.GetDriftRequest) (*drift.GetDriftResponse, error) { return nil, errors.New("boom") }
	for name, test := range map[string]struct {
		toy   *toy
		uses  []string
		first bool
		want  string
	}{
		"a preview":                              {toy: &toy{preview: says}, want: "[{toy dev 1 added false}]"},
		"a preview, and what differs":            {toy: &toy{preview: says, drift: drifts}, want: "[{toy dev 1 added false Missing:page}]"},
		"what differs, in place of a preview":    {toy: &toy{drift: drifts}, want: "[{toy dev resources that differ from the revision that runs: 1 false Missing:page}]"},
		"nothing differs":                        {toy: &toy{drift: same}, want: "[{toy dev nothing differs from the revision that runs true}]"},
		"neither, which is no error":             {want: "[{toy dev  unsupported}]"},
		"no preview, and an error":               {toy: &toy{drift: broken}, want: `[{toy dev not known: plugin "toy" answers GetDrift with Unknown: boom unknown}]`},
		"an error beside a preview":              {toy: &toy{preview: says, drift: broken}, want: "[{toy dev 1 added false}]"},
		"nothing runs that it could differ from": {toy: &toy{drift: broken}, first: true, want: "[{toy dev  unsupported}]"},
		"it is not ready":                        {toy: &toy{why: "it starts", preview: says}, want: `[{toy  not known: spec.plugins[0]: plugin "toy" is not ready: it starts unknown}]`},
		"it is not ready, and the application names places": {
			toy: &toy{why: "it starts"}, uses: []string{"dev", "prod"},
			want: `[{toy dev not known: spec.plugins[0]: plugin "toy" is not ready: it starts unknown} {toy prod not known: spec.plugins[0]: plugin "toy" is not ready: it starts unknown}]`,
		},
		"there is no such place": {uses: []string{"moon"}, want: `[{toy moon not known: spec.plugins[0].deployTargets[0]: plugin "toy" has no deploy target "moon"; it has dev unknown}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := test.toy, &files{}
			if p == nil {
				p = &toy{}
			}
			p.name, p.targets = "toy", []string{"dev"}
			planner := soon(directoryOf(t, p, &toy{name: "waits", preview: says}), f)
			planner.Timeout = time.Minute
			got, err := planner.Preview(t.Context(), question(func(q *Question) {
				q.Release = nil
				q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy", DeployTargets: test.uses}, {Name: "waits"}} // the latter deploys nowhere
				if !test.first {
					q.Running = &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v1"}}
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			if said := previewed(got); said != test.want || f.out != 0 {
				t.Errorf("%s\nwant %s, with %d folders left", said, test.want, f.out)
			}
		})
	}
}

func TestAPreviewEndsWithWhoeverWaitsForIt(t *testing.T) {
	asked := make(chan struct{})
	p := &toy{name: "toy", targets: []string{"dev"}, preview: func(*planpreview.GetPlanPreviewRequest) (*planpreview.GetPlanPreviewResponse, error) {
		close(asked)
		<-t.Context().Done()
		return nil, nil
	}}
	f := &files{}
	planner := soon(directoryOf(t, p), f)
	planner.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if got, err := planner.Preview(ctx, question(nil)); !errors.Is(err, context.Canceled) || f.out != 0 {
		t.Errorf("got %v, %v, with %d folders left", got, err, f.out)
	}
}
