package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// volume is a PersistentVolume for the claims of one namespace.
func volume(s *framework.Scenario) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: ""
  claimRef: {namespace: %[1]s, name: data}
  hostPath: {path: /tmp}
`, s.Namespace)
}

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  resources: {requests: {storage: 1Gi}}
`

func usingClaim(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
}

func TestPodsFollowTheirVolumes(t *testing.T) {
	s := suite.Scenario(t)
	s.West.Apply(volume(s))
	t.Cleanup(func() { s.West.Try("delete", "pv", s.Namespace, "--wait=false") })

	s.Logical.Apply(claim, pinned(edited(deployment("first", 1), usingClaim), "west"))
	awaitAvailable(s, "first", 1)
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
	s.Logical.KubectlInput(claim, "replace", "-f", "-")
	if volume := s.Logical.Kubectl("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}"); volume != s.Namespace {
		t.Errorf("after a replace the claim shows volume %q", volume)
	}

	// Whether it can grow is for its cluster to say.
	refuse(t, s.Logical.Try("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`),
		`cluster "west" refuses`, "the storageclass that provisions the pvc must support resize")

	// Two clusters are chosen, but the data is in one.
	s.Logical.Apply(pinned(edited(deployment("second", 2), usingClaim), "east,west"))
	second := awaitAvailable(s, "second", 2)
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
`, s.Namespace), pinned(edited(deployment("web", 1), usingClaim), "east"))
	framework.Await(s.Logical, "data", "shows its volume", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Spec.VolumeName == s.Namespace+"-0" && c.Status.Phase == corev1.ClaimBound
	})
	s.Logical.Kubectl("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	framework.Await(s.East, "data", "asks for more", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Spec.Resources.Requests.Storage().String() == "2Gi"
	})
}
