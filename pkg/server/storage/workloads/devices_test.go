package workloads

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestDevicesThatPodsAskForByNameAreWarnedOf(t *testing.T) {
	asking := func(d *apps.Deployment, claims ...api.PodResourceClaim) *apps.Deployment {
		d.Spec.Template.Spec.ResourceClaims = claims
		return d
	}
	template := func(name string) api.PodResourceClaim {
		return api.PodResourceClaim{Name: "device-" + name, ResourceClaimTemplateName: &name}
	}
	claim := func(name string) api.PodResourceClaim {
		return api.PodResourceClaim{Name: "device-" + name, ResourceClaimName: &name}
	}
	for name, test := range map[string]struct {
		old, new *apps.Deployment
		want     string
	}{
		"none are asked for": {new: deployment(1)},
		"a template": {
			new:  asking(deployment(1), template("gpu")),
			want: `Deployment "web": its pods get devices by ResourceClaimTemplate "gpu", and no such object is sent to clusters: make it in namespace "shop" of each cluster that is to run them`,
		},
		"a claim and two of a template": {
			new: asking(deployment(1), template("gpu"), claim("disk"), template("gpu")), want: `by ResourceClaim "disk", ResourceClaimTemplate "gpu", and`,
		},
		"one that is known":           {old: asking(stored(1), template("gpu")), new: asking(stored(1), template("gpu"))},
		"another one than before":     {old: asking(stored(1), template("gpu")), new: asking(stored(1), template("tpu")), want: `ResourceClaimTemplate "tpu"`},
		"none are asked for any more": {old: asking(stored(1), template("gpu")), new: stored(1)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, seen := storagetest.As(t, "jane")
			if s := placing(&placer{}); test.old == nil {
				s.PrepareForCreate(ctx, test.new)
			} else {
				s.PrepareForUpdate(ctx, test.new, test.old)
			}
			if got := strings.Join(seen.Texts, "\n"); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("warned of %q, want %q", got, test.want)
			}
		})
	}
}
