package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// twins are a logical cluster and a stock one that is none of its clusters, each with a namespace of the same name. What is asked of both is to be
// answered alike.
type twins struct {
	*framework.Scenario
	stock *framework.Side
}

func newTwins(t *testing.T) twins {
	s := suite.Fragile(t)
	w := twins{Scenario: s, stock: s.Side("north")}
	w.stock.Kubectl("create", "namespace", s.Namespace)
	s.Cleanup(func() { s.Environment.CleanupIn(s.T, w.stock.API, "delete", "namespace", s.Namespace, "--wait=false") })
	for _, side := range []*framework.Side{w.stock, s.East, s.West} {
		s.Disks(side, 3)
	}
	for _, side := range w.sides() {
		side.Kubectl("label", "namespace", s.Namespace, "pod-security.kubernetes.io/warn=restricted")
	}
	for _, side := range []*framework.Side{w.stock, w.Logical, s.East, s.West} {
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, "delete", "--wait=false", "--ignore-not-found",
				"runtimeclass/"+s.Namespace, "priorityclass/"+s.Namespace, "ingressclass/"+s.Namespace)
		})
		side.Apply(w.fill(`
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: NAMESPACE}
handler: sandbox
overhead: {podFixed: {memory: 16Mi}}
scheduling: {nodeSelector: {sandbox: "yes"}, tolerations: [{key: sandbox, operator: Exists}]}
`))
	}
	// A PriorityClass that an application brings, clusters have as well, as these let none in.
	for _, side := range []*framework.Side{s.East, s.West} {
		side.Kubectl("create", "priorityclass", s.Namespace, "--value=1000", "--preemption-policy=Never")
	}
	return w
}

func (w twins) sides() []*framework.Side { return []*framework.Side{w.stock, w.Logical} }

func (w twins) fill(manifest string) string {
	return strings.ReplaceAll(manifest, "NAMESPACE", w.Namespace)
}

// objects returns the manifests in a file of testdata/objects.
func (w twins) objects(file string) []string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/objects", file))
	if err != nil {
		w.Fatal(err)
	}
	return strings.Split(w.fill(string(data)), "\n---\n")
}

// nameIn finds the kind and the name in a manifest.
var nameIn = regexp.MustCompile(`(?ms)^kind: (\w+)$.*?^\s+name: (\S+)$|^kind: (\w+)$.*?\{name: ([^ ,}]+)`)

func called(manifest string) string {
	found := nameIn.FindStringSubmatch(manifest)
	if found == nil {
		return manifest
	}
	return found[1] + found[3] + " " + found[2] + found[4]
}

// differs is what differs on purpose: whose claim it is to protect, and which of its pods are not counted yet, are each cluster's own affair, and
// a name is made of another hash.
var differs = regexp.MustCompile(`(?m)^ +"finalizers": \[\s+"kubernetes.io/pvc-protection"\s+\],\n|,\n +"uncountedTerminatedPods": \{\}|"(currentRevision|updateRevision)": "[^"]+",\n`)

// madeUp is what a server makes up by itself, so that no two objects have the same.
var madeUp = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`), "kube-api-access-x"},
	{regexp.MustCompile(`"(nodePort|healthCheckNodePort)": [0-9]+`), `"$1": 30000`},
	{regexp.MustCompile(`"10\.[0-9.]+"`), `"10.0.0.1"`},
	{regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`), `"TIME"`},
	{regexp.MustCompile(`resourceVersion(\W+)[0-9]+`), "resourceVersion${1}1"},
}

// leavesManifold takes what Manifold adds to an object off it, as its documentation says.
func leavesManifold(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, v1alpha1.GroupName+"/") })
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		finalizers = slices.DeleteFunc(finalizers, func(f any) bool { return f == v1alpha1.FinalizerProjection })
		metadata["finalizers"] = finalizers
		if len(finalizers) == 0 {
			delete(metadata, "finalizers")
		}
	}
}

// lines are what somebody was told, without what is made up.
func lines(t *testing.T, r framework.Result) []string {
	t.Helper()
	out := r.Stdout
	var object map[string]any
	if json.Unmarshal([]byte(out), &object) == nil {
		leavesManifold(object)
		data, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out = string(data)
	}
	out = fmt.Sprintf("code %d\n%s\n%s", r.Code, r.Stderr, differs.ReplaceAllString(marks.ReplaceAllString(out, ""), ""))
	for _, m := range madeUp {
		out = m.what.ReplaceAllString(out, m.by)
	}
	return strings.Split(out, "\n")
}

// settles waits until a cluster says the same of an object as the stock one does, as it does once what it stands for runs.
func (w twins) settles(t *testing.T, in *framework.Side, args ...string) {
	t.Helper()
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		diff = cmp.Diff(lines(t, w.stock.Try(args...)), lines(t, in.Try(args...)))
		return diff == "", nil
	})
	if err != nil {
		t.Errorf("kubectl %s: a stock cluster (-) and %s (+) go on to differ:\n%s", strings.Join(args, " "), in.Name, diff)
	}
}

// ask does the same in both clusters, compares what they say, and returns what the stock one says.
func (w twins) ask(t *testing.T, manifest string, args ...string) (stock framework.Result) {
	t.Helper()
	stock = w.stock.TryInput(manifest, args...)
	above := w.Logical.TryInput(manifest, args...)
	above.Stderr = ours.ReplaceAllString(above.Stderr, "")
	if diff := cmp.Diff(lines(t, stock), lines(t, above)); diff != "" {
		t.Errorf("kubectl %s: a stock cluster (-) and the logical one (+) differ:\n%s", strings.Join(args, " "), diff)
	}
	return stock
}

// ours are warnings that no cluster has reason for: devices are made in each cluster.
var ours = regexp.MustCompile(`(?m)^Warning: .* and no such object is sent to clusters: .*\n`)

// changed are changes of the objects in taken.yaml that people try, some of which no cluster takes.
var changed = []struct{ object, patch string }{
	{"secret/db", `{"stringData": {"password": "other"}}`},
	{"secret/registry", `{"type": "Opaque"}`},
	{"configmap/db", `{"data": {"db.conf": ""}}`},
	{"configmap/db", `{"metadata": {"labels": {"a": "b"}}}`},
	{"service/web", `{"spec": {"loadBalancerClass": "example.com/other"}}`},
	{"service/web", `{"spec": {"type": "ClusterIP"}}`},
	{"service/web", `{"spec": {"clusterIP": "192.0.2.1", "clusterIPs": ["192.0.2.1"]}}`},
	{"service/web-nodes", `{"spec": {"type": "ClusterIP"}}`},
	{"service/db-headless", `{"spec": {"clusterIP": "", "clusterIPs": null}}`},
	{"service/outside", `{"spec": {"externalName": "_bad_"}}`},
	{"statefulset/db", `{"spec": {"serviceName": "other"}}`},
	{"statefulset/db", `{"spec": {"podManagementPolicy": "OrderedReady"}}`},
	{"statefulset/db", `{"spec": {"volumeClaimTemplates": []}}`},
	{"statefulset/db", `{"spec": {"selector": {"matchLabels": {"b": "c"}}}}`},
	{"deployment/web", `{"spec": {"selector": {"matchLabels": {"b": "c"}}}}`},
	{"deployment/web", `{"spec": {"strategy": {"type": "Recreate"}}}`},
	{"deployment/web", `{"spec": {"replicas": -1}}`},
	{"daemonset/agent", `{"spec": {"selector": {"matchLabels": {"b": "c"}}}}`},
	{"job/migrate", `{"spec": {"template": {"spec": {"containers": [{"name": "migrate", "image": "migrate:3"}]}}}}`},
	{"job/migrate", `{"spec": {"completions": 3}}`},
	{"job/indexed", `{"spec": {"completions": 3}}`},
	{"cronjob/backup", `{"spec": {"timeZone": "Nowhere/Land"}}`},
	{"cronjob/backup", `{"spec": {"suspend": true}}`},
	{"hpa/web", `{"spec": {"minReplicas": 9}}`},
	{"pdb/db", `{"spec": {"maxUnavailable": null, "minAvailable": "50%"}}`},
	{"pdb/db", `{"spec": {"minAvailable": "150%"}}`},
	{"pvc/uploads", `{"spec": {"accessModes": ["ReadWriteOnce"]}}`},
	{"pvc/uploads", `{"spec": {"storageClassName": "other"}}`},
	{"priorityclass/NAMESPACE", `{"value": 5}`},
	{"ingress/all", `{"spec": {"defaultBackend": null}}`},
	{"pod/smoke", `{"spec": {"containers": [{"name": "smoke", "image": "smoke:2"}]}}`},
	{"pod/smoke", `{"spec": {"nodeSelector": {"a": "b"}}}`},
	{"pod/smoke", `{"spec": {"restartPolicy": "Always"}}`},
	{"rolebinding/db", `{"roleRef": {"name": "other"}}`},
	{"replicaset/bare", `{"spec": {"selector": {"matchLabels": {"b": "c"}}}}`},
}

// arriving are those objects in taken.yaml that a cluster has as they are, by what of them is compared. Jobs are not: their pods have the selector
// that they have above, and when they go is decided there.
var arriving = []struct{ object, part string }{
	{"statefulset/db", "{.spec}"}, {"deployment/web", "{.spec}"}, {"daemonset/agent", "{.spec}"}, {"replicaset/bare", "{.spec}"}, {"rc/old", "{.spec}"},
	{"service/db-headless", "{.spec}"}, {"service/web", "{.spec}"}, {"service/web-nodes", "{.spec}"}, {"service/legacy", "{.spec}"},
	{"networkpolicy/db", "{.spec}"}, {"ingress/web", "{.spec}"}, {"ingress/all", "{.spec}"}, {"pdb/db", "{.spec}"}, {"pvc/uploads", "{.spec}"},
	{"configmap/db", "{.data}{.binaryData}{.immutable}"}, {"secret/db", "{.data}{.type}{.immutable}"}, {"secret/registry", "{.data}{.type}"},
	{"serviceaccount/db", "{.imagePullSecrets}{.automountServiceAccountToken}"},
}

// marks are what is in objects of clusters beside what users have written.
var marks = regexp.MustCompile(`(?m)^ +"(annotations|labels)": \{(\s+"` + regexp.QuoteMeta(v1alpha1.GroupName) + `/[^\n]+)+\s+\},?\n|^ +"` + regexp.QuoteMeta(v1alpha1.GroupName) + `/[^\n]+\n`)

// settling are those objects in taken.yaml that say how they are, and run wherever they are.
var settling = []string{
	"statefulset/db", "pdb/db", "pvc/data-db-0", "pvc/uploads", "service/web", "service/web-nodes", "ingress/web", "job/migrate", "job/indexed",
	"cronjob/backup", "rc/old", "replicaset/bare", "pod/smoke", "resourcequota/count", "hpa/web",
}

func TestObjectsOfChartsAreStoredAnsweredAndWarnedOfAsOnOneCluster(t *testing.T) {
	w := newTwins(t)
	for _, manifest := range w.objects("taken.yaml") {
		t.Run(called(manifest)+" is taken", func(t *testing.T) {
			if said := w.ask(t, manifest, "create", "-f", "-", "-o", "json"); said.Code != 0 {
				t.Errorf("no cluster takes it: %s", said.Stderr)
			}
		})
	}
	for _, manifest := range w.objects("refused.yaml") {
		t.Run(called(manifest)+" is refused", func(t *testing.T) {
			if w.ask(t, manifest, "create", "-f", "-", "-o", "json").Code == 0 {
				t.Error("both clusters take it")
			}
		})
	}
	for _, c := range changed {
		t.Run(c.object+" "+c.patch, func(t *testing.T) {
			w.ask(t, "", "patch", w.fill(c.object), "--type=merge", "--dry-run=server", "-o", "jsonpath={.spec}", "-p", c.patch)
		})
	}
	for _, object := range settling {
		t.Run(object+" comes to run", func(t *testing.T) { w.settles(t, w.Logical, "get", object, "-o", "jsonpath-as-json={.status}") })
	}
	home := w.Side(onlyCluster(w.Scenario, framework.Await(w.Logical, "db", "is there", framework.Exists[*appsv1.StatefulSet])))
	for _, a := range arriving {
		t.Run(a.object+" arrives", func(t *testing.T) { w.settles(t, home, "get", a.object, "-o", "jsonpath-as-json="+a.part) })
	}
	t.Run("what is applied again is unchanged", func(t *testing.T) {
		all := strings.Join(w.objects("taken.yaml"), "\n---\n")
		w.ask(t, all, "apply", "-f", "-")
		w.ask(t, all, "diff", "-f", "-")
	})
}
