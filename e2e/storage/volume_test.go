package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestPodsFollowTheirVolumes(t *testing.T) {
	s := suite.Scenario(t)
	s.West.Apply(manifests.Volume(s))
	t.Cleanup(func() { s.West.Try("delete", "pv", s.Namespace, "--wait=false") })

	s.Logical.Apply(manifests.Claim, manifests.Pinned(manifests.Edited(manifests.Deployment("first", 1), manifests.UsingClaim), "west"))
	expect.RolledOut(s, "first", 1)
	above := framework.Await(s.Logical, "data", "is bound", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	if size := above.Status.Capacity[corev1.ResourceStorage]; size.String() != "1Gi" {
		t.Errorf("capacity %s, want that of the volume", size.String())
	}
	s.Logical.Kubectl("wait", "pvc/data", "--for=jsonpath={.spec.volumeName}="+s.Namespace, "--timeout=60s")
	row := strings.Fields(framework.Lines(s.Logical.Kubectl("get", "pvc", "data", "--no-headers"))[0])
	if want := []string{"data", "Bound", s.Namespace, "1Gi", "RWX"}; !slices.Equal(row[:min(len(row), len(want))], want) {
		t.Errorf("kubectl prints %q, want %q", row, want)
	}
	// Who does not know of the volume can still write the claim.
	s.Logical.KubectlInput(manifests.Claim, "replace", "-f", "-")
	if volume := s.Logical.Kubectl("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}"); volume != s.Namespace {
		t.Errorf("after a replace the claim shows volume %q", volume)
	}

	// Whether it can grow is for its cluster to say.
	expect.Refused(t, s.Logical.Try("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`),
		`cluster "west" refuses`, "the storageclass that provisions the pvc must support resize")

	// Two clusters are chosen, but the data is in one.
	s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("second", 2), manifests.UsingClaim), "east,west"))
	second := expect.RolledOut(s, "second", 2)
	if where := framework.DecisionOf(s, second); len(where) != 1 || where["west"].Replicas != 2 {
		t.Errorf("decision %v, want all where the volume is", where)
	}

	s.Logical.Kubectl("delete", "deployment", "first", "second")
	framework.AwaitGone[*appsv1.Deployment](s.West, "second")
	framework.Await(s.West, "data", "stays while its user keeps it", func(c *corev1.PersistentVolumeClaim) bool {
		return c.DeletionTimestamp == nil && c.Status.Phase == corev1.ClaimBound
	})
	s.Logical.Kubectl("delete", "pvc", "data")
	framework.AwaitGone[*corev1.PersistentVolumeClaim](s.West, "data")
}

func TestAClaimOfAUserGrowsWhereItIs(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Disks(s.East, 1)
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %s
  resources: {requests: {storage: 1Gi}}
`, s.Namespace), manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), manifests.UsingClaim), "east"))
	framework.Await(s.Logical, "data", "shows its volume", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Spec.VolumeName == s.Namespace+"-0" && c.Status.Phase == corev1.ClaimBound
	})
	s.Logical.Kubectl("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	framework.Await(s.East, "data", "asks for more", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Spec.Resources.Requests.Storage().String() == "2Gi"
	})
}
