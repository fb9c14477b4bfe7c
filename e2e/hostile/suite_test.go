// Package hostile attacks the product from outside, as the admin of one joined cluster whose API server lies, and as a user who may edit
// one namespace. Each attack is refused and told, and changes nothing above that is not the attacker's own, and nothing in other clusters.
//
// Cluster "west" is the attacker's: its admin is Mallory, and a proxy says in its stead what she likes. Cluster "east" is honest, and has
// a proxy too, which only writes down what it is asked. A victim has workloads and Secrets in east alone.
package hostile

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// shared is the logical cluster that is attacked.
var shared = framework.NewShared(framework.Options{
	Clusters: []string{"east", "west"}, Liars: []string{"east", "west"}, JoinArgs: allowKinds(),
	// Much less than by default, so that storms of any size come to it.
	ManifoldArgs: []string{"--max-cluster-bytes=64Mi"}, AuditPolicy: `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
  users: ["system:manifold:cluster:west"]
- level: None
`})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// arena is what one test works with. Its namespace is the attacker's: she may edit it above, and runs something honest in it in west.
type arena struct {
	*framework.Scenario
	east, west *liar.Server
	// logical is the identity of the logical cluster, which is in every mark.
	logical string
	before  picture
}

// victims are what must not be reached, made once for all tests.
var victims struct {
	once sync.Once
	err  error
	// words are what Secrets hold that nobody but east may get.
	words map[string]string
}

// enter returns the arena of a test, with an honest workload that runs in west already, and remembers how everything is that must stay so.
func enter(t *testing.T) *arena {
	t.Helper()
	e := shared.Get(t)
	victims.once.Do(func() { victims.err = settle(t.Context(), e) })
	if victims.err != nil {
		t.Fatalf("make the victims: %v", victims.err)
	}
	s := framework.NewScenario(t, e)
	a := &arena{Scenario: s, east: e.Liars["east"], west: e.Liars["west"], logical: framework.IdentityOf(t, e)}
	// What is pinned to both clusters is in both, whatever they say of their capacity. StatefulSets are divided only where they are listed.
	for name, kinds := range map[string][]any{"even": nil, "even-sets": {"StatefulSet"}} {
		spec := map[string]any{"division": map[string]any{"type": "Divide", "by": "Even"}}
		if kinds != nil {
			spec["workloads"], spec["priority"] = map[string]any{"kinds": kinds}, int64(1)
		}
		a.create(object{resource: placementPolicies, manifest: map[string]any{
			"apiVersion": "manifold.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": map[string]any{"name": name}, "spec": spec,
		}})
	}
	a.create(deployment("own", 1, "west"))
	framework.Await(s.Logical, "own", "runs", expect.Available(1))
	a.ownCustom()
	a.before = a.look()
	return a
}

// within returns the arena for a subtest.
func (a *arena) within(t *testing.T) *arena {
	out := *a
	out.Scenario = a.Subtest(t)
	return &out
}

const (
	// victim is the namespace above of somebody who has nothing to do with west.
	victim = "victim"
	// bystander is a namespace above that has no workload.
	bystander = "bystander"
)

// settle makes the victims.
func settle(ctx context.Context, e *framework.Environment) error {
	victims.words = map[string]string{}
	for _, name := range []string{victim, bystander} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := e.Logical.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, namespace := range []string{victim, metav1.NamespaceDefault, bystander} {
		word, err := watchword()
		if err != nil {
			return err
		}
		victims.words["Secret "+namespace+"/crown"] = word
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crown"}, Data: map[string][]byte{"jewel": []byte(word)}}
		if _, err := e.Logical.Kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := rememberCredential(ctx, e); err != nil {
		return err
	}
	if err := define(ctx, e); err != nil {
		return err
	}
	for _, obj := range estate() {
		if err := create(ctx, e.Logical, obj.namespace, obj.resource, obj.manifest); err != nil {
			return fmt.Errorf("make %s: %w", obj.resource.Resource, err)
		}
	}
	return awaitEstate(ctx, e)
}

// rememberCredential has the credential of east among what nobody may get.
func rememberCredential(ctx context.Context, e *framework.Environment) error {
	secret, err := e.Logical.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(ctx, "cluster-east", metav1.GetOptions{})
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return err
	}
	for name, user := range config.AuthInfos {
		if user.Token == "" {
			return fmt.Errorf("user %s of east's kubeconfig has no token", name)
		}
		victims.words["the credential of east"] = user.Token
	}
	return nil
}

func watchword() (string, error) {
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	return "jewel-" + base64.RawURLEncoding.EncodeToString(random), nil
}

// unharmed waits until manifold has seen everything that was done in west before, and then checks that nothing has come of it: what must
// stay as it was is so, above and in east; nothing above has a name or an image of Mallory's; west got no Secret that is not its own; and
// the server is well.
func (a *arena) unharmed() {
	a.Helper()
	a.canary()
	after := a.look()
	for _, difference := range a.before.differences(after) {
		a.Errorf("changed: %s", difference)
	}
	a.before = after
	for _, name := range a.mallorys() {
		a.tell("Mallory's is above: " + name)
	}
	a.keptSecrets()
	a.small()
}

// damage is what tests have failed with, so that those after them do not fail for it too.
var damage struct {
	sync.Mutex
	known sets.Set[string]
}

// tell fails the test for something that no earlier one has failed for.
func (a *arena) tell(problem string) {
	a.Helper()
	damage.Lock()
	defer damage.Unlock()
	if damage.known == nil {
		damage.known = sets.New[string]()
	}
	if !damage.known.Has(problem) {
		damage.known.Insert(problem)
		a.Error(problem)
	}
}

// keptSecrets checks that west was sent nothing that is not its own.
func (a *arena) keptSecrets() {
	a.Helper()
	for what, word := range victims.words {
		for _, sent := range a.west.Sent(liar.Holds(word)) {
			a.tell(fmt.Sprintf("west was sent %s by %s %s", what, sent.Method, sent.Path))
		}
	}
	for _, token := range a.west.Tokens() {
		if token == victims.words["the credential of east"] {
			a.Error("west was shown the credential of east")
		}
	}
}

// mostMemory is what the server may take: what it needs for some hundred objects, 400 MiB, and what a dozen attacks at once make of it while the
// heap may grow to three times what is live. They offer many times as much.
const mostMemory = 3 << 29

// small checks that the server has not grown.
func (a *arena) small() {
	a.Helper()
	usage, err := process.UsageOf(a.Environment.Manifold.Process().PID())
	if err != nil {
		a.Fatal(err)
	}
	a.Logf("the server takes %d MiB", usage.RSS/mebibyte)
	if usage.RSS > mostMemory {
		a.Errorf("the server takes %d MiB", usage.RSS/mebibyte)
	}
}

// canary makes something honest run in west, twice, one after the other. It goes the same ways down and up as what was done before it, and
// is behind it in every queue.
func (a *arena) canary() {
	a.Helper()
	for range 2 {
		name := a.unique("canary")
		a.create(deployment(name, 1, "west"))
		framework.Await(a.Logical, name, "runs", expect.Available(1))
		framework.AwaitList(a.Logical, "app="+name, "its pod is shown", func(all []*corev1.Pod) bool { return len(all) == 1 })
	}
}

var serial struct {
	mu   sync.Mutex
	last int
}

// unique returns a name that no other object of these tests has.
func (a *arena) unique(prefix string) string {
	serial.mu.Lock()
	defer serial.mu.Unlock()
	serial.last++
	return fmt.Sprintf("%s-%d", prefix, serial.last)
}

// ticks is for asking again what nobody can watch.
func ticks() <-chan time.Time { return time.After(20 * time.Millisecond) }
