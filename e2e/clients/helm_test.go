package clients

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// release is what Helm has installed under the name "shop" in a scenario's namespace.
type release struct {
	*framework.Scenario
	home string
}

// bakery is a chart of what charts are made of. Its custom resource definition stays, as Helm never deletes one.
const bakery = "testdata/charts/bakery"

// newRelease prepares what the chart "bakery" needs of its clusters: volumes for its store.
func newRelease(t *testing.T) release {
	s := suite.Scenario(t)
	volumes(s)
	return release{s, t.TempDir()}
}

// volumes makes two PersistentVolumes in each cluster, of a class that has the scenario's name.
func volumes(s *framework.Scenario) {
	s.Helper()
	for _, side := range []*framework.Side{s.East, s.West} {
		for i := range 2 {
			side.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s-%[2]d
  labels: {e2e: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: %[1]s
  hostPath: {path: /tmp}
`, s.Namespace, i))
		}
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, "delete", "pv", "-l", "e2e="+s.Namespace, "--wait=false")
		})
	}
}

func (r release) helm(args ...string) string {
	r.Helper()
	return r.Logical.Helm(r.home, args...)
}

// to returns the arguments of an installation or upgrade, which waits for everything.
func (r release) to(verb, timeout string, args ...string) []string {
	return append([]string{verb, "shop", bakery, "--wait", "--wait-for-jobs", "--timeout", timeout,
		"--set", "store.storageClass=" + r.Namespace}, args...)
}

// state is what "helm status" says of the release.
func (r release) state() (status string, revision int) {
	r.Helper()
	var out struct {
		Info    struct{ Status string }
		Version int
	}
	if err := json.Unmarshal([]byte(r.helm("status", "shop", "-o", "json")), &out); err != nil {
		r.Fatal(err)
	}
	return out.Info.Status, out.Version
}

func (r release) wantState(status string, revision int) {
	r.Helper()
	if gotStatus, gotRevision := r.state(); gotStatus != status || gotRevision != revision {
		r.Errorf("the release is %s at revision %d, want %s at %d", gotStatus, gotRevision, status, revision)
	}
}

// whole claims that a StatefulSet is rolled out with that many replicas.
func whole(replicas int32) func(*appsv1.StatefulSet) bool {
	return func(set *appsv1.StatefulSet) bool {
		s := set.Status
		return s.ObservedGeneration >= set.Generation && s.Replicas == replicas && s.ReadyReplicas == replicas &&
			s.UpdatedReplicas == replicas && s.CurrentRevision == s.UpdateRevision
	}
}

// wantRunning checks that what Helm waited for is so the moment that it returns, above and below.
func (r release) wantRunning(webImage, greeting string) {
	r.Helper()
	ctx, apps := r.Context(), r.Logical.Kube.AppsV1()
	web, err := apps.Deployments(r.Namespace).Get(ctx, "shop-web", metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if s := web.Status; s.AvailableReplicas == 0 || s.UnavailableReplicas > 1 || framework.ImageOf(web) != webImage {
		r.Errorf("Deployment shop-web has image %s and status %+v, want %s rolled out", framework.ImageOf(web), s, webImage)
	}
	store, err := apps.StatefulSets(r.Namespace).Get(ctx, "shop-store", metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if !whole(2)(store) {
		r.Errorf("StatefulSet shop-store has status %+v, want 2 ready replicas", store.Status)
	}
	// The namespace is kept together, so the release is in one cluster.
	side := r.Side(onlyCluster(r.Scenario, store))
	below, err := side.Kube.AppsV1().Deployments(r.Namespace).Get(ctx, "shop-web", metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if framework.ImageOf(below) != webImage || below.Status.UpdatedReplicas != below.Status.Replicas {
		r.Errorf("in %s Deployment shop-web has image %s and status %+v, want %s", side.Name, framework.ImageOf(below), below.Status, webImage)
	}
	framework.Await(side, "shop-web", "says what the release does", func(c *corev1.ConfigMap) bool { return c.Data["GREETING"] == greeting })
	framework.Await(side, "shop-web", "is there", framework.Exists[*corev1.Service])
	framework.Await(side, "shop-web", "is there", framework.Exists[*networkingv1.Ingress])
	framework.Await(side, "shop-web", "is there", framework.Exists[*policyv1.PodDisruptionBudget])
	framework.Await(side, "shop", "is there", framework.Exists[*corev1.ServiceAccount])
}

// onlyCluster returns where an object runs that is in one cluster.
func onlyCluster(s *framework.Scenario, o metav1.Object) string {
	s.Helper()
	shares := framework.DecisionOf(s, o)
	if len(shares) != 1 {
		s.Fatalf("%s runs in %s, want one cluster", o.GetName(), shares)
	}
	for cluster := range shares {
		return cluster
	}
	return ""
}

// password is what the chart made up when it was installed.
func (r release) password() string {
	r.Helper()
	out, err := base64.StdEncoding.DecodeString(r.Logical.Kubectl("get", "secret", "shop-store", "-o", "jsonpath={.data.password}"))
	if err != nil || len(out) != 16 {
		r.Fatalf("the password is %q (%v), want 16 letters", out, err)
	}
	return string(out)
}

func TestAChartLivesAsOnOneCluster(t *testing.T) {
	r := newRelease(t)
	expect.Says(t, r.helm(r.to("install", "2m")...), "deployed", "hello from revision 1 on v1.", "with a budget")
	r.wantState("deployed", 1)
	r.wantRunning("web:1", "hello")
	password := r.password()
	expect.Says(t, r.Logical.Kubectl("get", "oven", "shop", "-o", "jsonpath={.spec}"), `"degrees":220`, `"door":"closed"`)
	if got := r.Logical.Kubectl("get", "job", "shop-migrate", "--ignore-not-found"); got != "" {
		t.Errorf("the hook that has succeeded is still there: %s", got)
	}
	framework.Await(r.Logical, "shop-announce", "was waited for", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
	framework.Await(r.Logical, "shop-web", "is scaled by its autoscaler", expect.Available(2))

	r.helm(r.to("upgrade", "2m", "--set", "web.image=web:2", "--set", "greeting=goodbye", "--set", "cache.enabled=false")...)
	r.wantState("deployed", 2)
	r.wantRunning("web:2", "goodbye")
	if r.password() != password {
		t.Error("the upgrade made another password, as if lookup had found none")
	}
	if d, err := r.Logical.Kube.AppsV1().Deployments(r.Namespace).Get(t.Context(), "shop-web", metav1.GetOptions{}); err != nil || *d.Spec.Replicas < 2 {
		t.Errorf("the upgrade took replicas from the autoscaler: %v, %v", d.Spec.Replicas, err)
	}
	for _, side := range []*framework.Side{r.Logical, r.East, r.West} {
		framework.AwaitGone[*appsv1.Deployment](side, "shop-cache")
	}

	r.helm("rollback", "shop", "1", "--wait", "--wait-for-jobs", "--timeout", "2m")
	r.wantState("deployed", 3)
	r.wantRunning("web:1", "hello")
	framework.Await(r.Logical, "shop-cache", "is back", expect.Available(1))
	expect.Says(t, r.helm("history", "shop"), "superseded", "Rollback to 1")

	// The first test is a bare pod, whose log Helm reads.
	expect.Says(t, r.helm("test", "shop", "--timeout", "1m", "--logs"), "Phase:          Succeeded", "POD LOGS: shop-smoke")
	framework.Await(r.Logical, "shop-smoke", "has ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	r.wantNoDrift()

	expect.Says(t, r.helm("uninstall", "shop", "--wait", "--timeout", "2m"), `release "shop" uninstalled`)
	r.wantNothingLeft()
}

// wantNoDrift checks that nothing which the release says differs from what is there.
func (r release) wantNoDrift() {
	r.Helper()
	r.Logical.Poll("the manifest does not differ", func() error {
		manifest := r.helm("get", "manifest", "shop")
		if result := r.Logical.TryInput(manifest, "diff", "--server-side", "--field-manager=e2e", "--force-conflicts", "-f", "-"); result.Code != 0 {
			return fmt.Errorf("%s", result)
		}
		return nil
	})
}

// wantNothingLeft checks that an uninstalled release has left nothing anywhere but the claims, which no controller deletes, and the hooks
// that stay by their policy.
func (r release) wantNothingLeft() {
	r.Helper()
	kinds := "deployments,replicasets,statefulsets,pods,services,ingresses,poddisruptionbudgets,serviceaccounts,configmaps,secrets,cronjobs"
	stays := map[string]bool{
		"serviceaccount/default": true, "configmap/kube-root-ca.crt": true, "configmap/shop-migration": true, "job.batch/shop-announce": true,
		"pod/shop-smoke": true,
	}
	for _, side := range []*framework.Side{r.Logical, r.East, r.West} {
		side.Poll("nothing is left", func() error {
			for _, name := range strings.Fields(side.Kubectl("get", kinds, "-o", "name")) {
				if !stays[name] && !strings.HasPrefix(name, "pod/shop-announce-") {
					return fmt.Errorf("there is %s", name)
				}
			}
			return nil
		})
	}
}

func TestAFailedUpgradeIsRolledBack(t *testing.T) {
	framework.Long(t)
	r := newRelease(t)
	r.helm(r.to("install", "2m")...)
	expect.Refused(t, r.Logical.TryHelm(r.home, r.to("upgrade", "5s", "--rollback-on-failure", "--set", "web.image=registry.invalid/web:2")...), "rolled back")
	r.wantState("deployed", 3)
	r.wantRunning("web:1", "hello")
	expect.Says(t, r.helm("history", "shop"), "failed", "Rollback to 1")
	framework.Await(r.Logical, "shop-web", "runs the old image alone", func(d *appsv1.Deployment) bool {
		return expect.Available(2)(d) && framework.ImageOf(d) == "web:1"
	})
	expect.Refused(t, r.Logical.TryHelm(r.home, r.to("upgrade", "1m", "--set", "store.replicas=0")...), "replicas")

	expect.Refused(t, r.Logical.TryHelm(r.home, r.to("upgrade", "1m", "--set", "migration.outcome=fail")...), "pre-upgrade hooks failed", "shop-migrate")
	r.wantState("failed", 4)
	framework.Await(r.Logical, "shop-migrate", "stays to be looked at", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
	r.helm(r.to("upgrade", "2m", "--set", "store.image=store:2")...)
	r.wantState("deployed", 5)
	r.helm("uninstall", "shop", "--wait", "--timeout", "2m")
}
