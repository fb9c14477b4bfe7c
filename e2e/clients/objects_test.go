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
		side.Apply(w.fill(`
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: NAMESPACE}
handler: sandbox
overhead: {podFixed: {memory: 16Mi}}
scheduling: {nodeSelector: {sandbox: "yes"}, tolerations: [{key: sandbox, operator: Exists}]}
`))
		s.Cleanup(func() {
			s.Environment.CleanupIn(s.T, side.API, "delete", "--wait=false", "--ignore-not-found",
				"runtimeclass/"+s.Namespace, "priorityclass/"+s.Namespace, "ingressclass/"+s.Namespace)
		})
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

// answer is what somebody was told, without what is made up.
func answer(t *testing.T, r framework.Result) string {
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
	out = fmt.Sprintf("code %d\n%s\n%s", r.Code, r.Stderr, out)
	for _, m := range madeUp {
		out = m.what.ReplaceAllString(out, m.by)
	}
	return out
}

// settles waits until both clusters say the same of an object, as they do once what it stands for runs.
func (w twins) settles(t *testing.T, args ...string) {
	t.Helper()
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, framework.Deadline, true, func(context.Context) (bool, error) {
		diff = cmp.Diff(strings.Split(answer(t, w.stock.Try(args...)), "\n"), strings.Split(answer(t, w.Logical.Try(args...)), "\n"))
		return diff == "", nil
	})
	if err != nil {
		t.Errorf("kubectl %s: a stock cluster (-) and the logical one (+) go on to differ:\n%s", strings.Join(args, " "), diff)
	}
}

// ask does the same in both clusters and compares what they say.
func (w twins) ask(t *testing.T, manifest string, args ...string) (code int) {
	t.Helper()
	stock, above := w.stock.TryInput(manifest, args...), w.Logical.TryInput(manifest, args...)
	if diff := cmp.Diff(strings.Split(answer(t, stock), "\n"), strings.Split(answer(t, above), "\n")); diff != "" {
		t.Errorf("kubectl %s: a stock cluster (-) and the logical one (+) differ:\n%s", strings.Join(args, " "), diff)
	}
	return stock.Code
}

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

// running are those objects in taken.yaml that say how they are, and run wherever they are.
var running = []string{
	"statefulset/db", "pdb/db", "pvc/data-db-0", "pvc/uploads", "service/web", "service/web-nodes", "ingress/web", "job/migrate", "job/indexed",
	"cronjob/backup", "rc/old", "replicaset/bare", "pod/smoke", "resourcequota/count", "hpa/web",
}

func TestObjectsOfChartsAreStoredAnsweredAndWarnedOfAsOnOneCluster(t *testing.T) {
	w := newTwins(t)
	for _, manifest := range w.objects("taken.yaml") {
		t.Run(called(manifest)+" is taken", func(t *testing.T) {
			if w.ask(t, manifest, "create", "-f", "-", "-o", "json") != 0 {
				t.Error("no cluster takes it")
			}
		})
	}
	for _, manifest := range w.objects("refused.yaml") {
		t.Run(called(manifest)+" is refused", func(t *testing.T) {
			if w.ask(t, manifest, "create", "-f", "-", "-o", "json") == 0 {
				t.Error("both clusters take it")
			}
		})
	}
	for _, c := range changed {
		t.Run(c.object+" "+c.patch, func(t *testing.T) {
			w.ask(t, "", "patch", w.fill(c.object), "--type=merge", "--dry-run=server", "-o", "jsonpath={.spec}", "-p", c.patch)
		})
	}
	for _, object := range running {
		t.Run(object+" comes to run", func(t *testing.T) { w.settles(t, "get", object, "-o", "jsonpath-as-json={.status}") })
	}
	t.Run("what is applied again is unchanged", func(t *testing.T) {
		all := strings.Join(w.objects("taken.yaml"), "\n---\n")
		w.ask(t, all, "apply", "-f", "-")
		w.ask(t, all, "diff", "-f", "-")
	})
}
