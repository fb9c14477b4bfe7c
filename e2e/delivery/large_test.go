package delivery

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

const (
	// someObjects are enough to need several chunks, and few enough to take seconds. DELIVERY_OBJECTS asks for more.
	someObjects = 300
	// together are the objects of one Deployment: the Deployment, its Service, its Secret, and the ConfigMaps that its pods use.
	together = 50
)

// manyObjects are files with so many objects, which say a version.
func manyObjects(count int, version string) map[string]string {
	files := map[string]string{}
	for group := 0; group*together < count; group++ {
		name := fmt.Sprintf("part-%d", group)
		var from, out strings.Builder
		for i := range min(together, count-group*together) - 3 {
			fmt.Fprintf(&from, "\n        - configMapRef: {name: %s-%d}", name, i)
			fmt.Fprintf(&out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\ndata: {%s_%d: the settings of one of many parts, version: %s}\n",
				name, i, strings.ReplaceAll(name, "-", "_"), i, version)
		}
		fmt.Fprintf(&out, `---
{apiVersion: v1, kind: Secret, metadata: {name: %[1]s}, stringData: {password: of %[2]s}}
---
{apiVersion: v1, kind: Service, metadata: {name: %[1]s, annotations: {version: %[2]s}}, spec: {selector: {app: %[1]s}, ports: [{port: 80}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: web
        image: web:%[2]s
        resources: {requests: {cpu: 1m, memory: 1Mi}}
        envFrom:
        - secretRef: {name: %[1]s}%[3]s
`, name, version, from.String())
		files[fmt.Sprintf("web/%s.yaml", name)] = out.String()
	}
	return files
}

// saysVersion counts the ConfigMaps of a side that say a version.
type saysVersion struct {
	mu sync.Mutex
	at map[string]sets.Set[string]
}

func (v *saysVersion) note(obj any) {
	configMap := obj.(*corev1.ConfigMap)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, names := range v.at {
		names.Delete(configMap.Name)
	}
	version := configMap.Data["version"]
	if v.at[version] == nil {
		v.at[version] = sets.New[string]()
	}
	v.at[version].Insert(configMap.Name)
}

func (v *saysVersion) count(version string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at[version].Len()
}

// watchVersions counts for as long as the test runs.
func watchVersions(s *framework.Scenario, side *framework.Side) *saysVersion {
	out := &saysVersion{at: map[string]sets.Set[string]{}}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(side.Kube.CoreV1().RESTClient(), "configmaps", s.Namespace, fields.Everything()),
		ObjectType:    &corev1.ConfigMap{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: out.note, UpdateFunc: func(_, obj any) { out.note(obj) }},
	})
	go informer.RunWithContext(side.Context())
	return out
}

func TestAnApplicationOfManyObjects(t *testing.T) {
	framework.Long(t)
	count := someObjects
	if asked, err := strconv.Atoi(os.Getenv("DELIVERY_OBJECTS")); err == nil {
		count = max(asked, together)
	}
	count -= count % together
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2*framework.Deadline + time.Duration(count)*100*time.Millisecond)
	sides := []*framework.Side{s.Logical, s.East, s.West}
	var versions []*saysVersion
	for _, side := range sides {
		versions = append(versions, watchVersions(s, side))
	}
	// released waits until a version is everywhere, and says how long that took: it is to be read, since machines differ.
	released := func(revision, version string) {
		began, settings := time.Now(), count/together*(together-3)
		for i, side := range sides {
			patient.Logical.Poll(fmt.Sprintf("the %d ConfigMaps of %s are in %s", settings, version, side.Name), func() error {
				if got := versions[i].count(version); got != settings {
					return fmt.Errorf("%d of %d are", got, settings)
				}
				return nil
			})
			t.Logf("%d objects of %s: in %s after %s", count, version, side.Name, time.Since(began).Round(100*time.Millisecond))
		}
		awaitPhase(&patient, revision, v1alpha1.ReleaseSucceeded)
		t.Logf("%d objects of %s: released after %s", count, version, time.Since(began).Round(100*time.Millisecond))
		last := fmt.Sprintf("part-%d", count/together-1)
		expect.AwaitRuns(s, last, map[string]string{"east": "1 of web:" + version, "west": "1 of web:" + version})
		for _, side := range sides {
			for _, secret := range []string{"part-0", last} {
				framework.Await(side, secret, "is that of "+version, func(secret *corev1.Secret) bool { return string(secret.Data["password"]) == "of "+version })
			}
		}
	}

	r := gittest.New(t, "shop")
	r.Commit("The first version", manyObjects(count, "v1"))
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: web, interval: 1h}}
  targets: [{name: first, cluster: east}, {name: second, cluster: west}]
`, r.Serve()))
	released("web-v1", "v1")

	r.Commit("Another version of everything", manyObjects(count, "v2"))
	s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
	released("web-v2", "v2")
}
