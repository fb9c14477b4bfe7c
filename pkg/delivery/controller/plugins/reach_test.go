package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
)

// deploying is a logical cluster with a plugin that deploys to all of its clusters.
type deploying struct {
	*world
	// asked are the tokens that were asked for, as NAMESPACE/NAME of the account and the audience.
	asked []string
	// fails is what asking comes to, nil where there are tokens.
	fails error
}

func newDeploying(t *testing.T, clusters ...string) *deploying {
	t.Helper()
	of := plugin("a")
	of.Spec.DeployTargets = []v1alpha1.PluginTarget{
		{Name: "here"},
		{Name: "all", ClusterSelector: &metav1.LabelSelector{}, ServiceAccountRef: deployer, Config: &runtime.RawExtension{Raw: []byte(`{"kubectlVersion":"1.33.0"}`)}},
	}
	w := &deploying{world: newWorld(t, true, of)}
	w.host.says["a"] = host.Status{Generation: 3, Reason: v1alpha1.PluginReasonStarting}
	for _, name := range clusters {
		w.join(name)
	}
	w.kube.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		w.asked = append(w.asked, create.Namespace+"/"+create.Name+" for "+strings.Join(create.Object.(*authenticationv1.TokenRequest).Spec.Audiences, ","))
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: fmt.Sprint("token ", len(w.asked)), ExpirationTimestamp: metav1.NewTime(w.clock.Now().Add(time.Hour)),
		}}, w.fails
	})
	return w
}

func (w *deploying) join(name string) {
	w.Helper()
	if err := w.own.Manifold().V1alpha1().Clusters().Informer().GetIndexer().Add(&manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		w.Fatal(err)
	}
}

// account makes the account, or the next one of its name.
func (w *deploying) account(uid string) *corev1.ServiceAccount {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployer", UID: types.UID(uid)}}
	if err := w.Accounts.Informer().GetIndexer().Update(account); err != nil {
		w.Fatal(err)
	}
	return account
}

// targets are those that the host is to start the plugin with.
func (w *deploying) targets() (names []string) {
	for _, target := range w.host.specs["a"].Targets {
		names = append(names, target.Name)
	}
	return names
}

func (w *deploying) wantReady(of v1alpha1.PluginStatus, status metav1.ConditionStatus, reason, says string) {
	w.Helper()
	wantCondition(w.T, of, v1alpha1.PluginTargetsReady, status, reason, says)
}

func TestAClusterIsADeployTargetWithAKubeconfigOfItsView(t *testing.T) {
	w := newDeploying(t, "west", "east")
	w.account("1")
	w.wantReady(w.step("a"), metav1.ConditionTrue, v1alpha1.PluginReasonComplete, "clusters that are deploy targets: 2")
	if got := w.targets(); !slices.Equal(got, []string{"here", "east", "west"}) {
		t.Errorf("targets %v", got)
	}
	if want := []string{"shop/deployer for view.manifold.dev/east", "shop/deployer for view.manifold.dev/west"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked for tokens of %v", w.asked)
	}
	spec := w.host.specs["a"]
	var config struct {
		KubectlVersion, KubeConfigPath string
		AppStateInformer               struct{ Namespace string }
	}
	if err := json.Unmarshal(spec.Targets[1].Config, &config); err != nil {
		t.Fatal(err)
	}
	if config.KubectlVersion != "1.33.0" || config.KubeConfigPath != "/homes/a/east.kubeconfig" || config.AppStateInformer.Namespace != "shop" || spec.Targets[0].Config != nil {
		t.Errorf("configured with %+v, and here with %s", config, spec.Targets[0].Config)
	}
	kubeconfig, err := clientcmd.Load([]byte(spec.Files["east.kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	server, by := kubeconfig.Clusters["east"].Server, kubeconfig.AuthInfos["deployer"].TokenFile
	if server != "https://127.0.0.1:6443/clusters/east" || by != "east.token" || spec.Files["east.token"] != "token 1" || len(spec.Files) != 4 {
		t.Errorf("reaches %s by %s, files %v", server, by, spec.Files)
	}
	for _, target := range spec.Targets {
		if strings.Contains(string(target.Config), "token") {
			t.Errorf("the configuration, which others may see, has a token: %s", target.Config)
		}
	}
}

func TestATokenIsRenewedInTimeAndTheTargetsStay(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.step("a")
	before := w.host.specs["a"]
	w.clock.SetTime(now.Add(47 * time.Minute))
	w.step("a")
	if len(w.asked) != 1 || !reflect.DeepEqual(w.host.specs["a"], before) {
		t.Errorf("asked for %v before it is time", w.asked)
	}
	w.clock.SetTime(now.Add(48 * time.Minute))
	w.step("a")
	after := w.host.specs["a"]
	if after.Files["east.token"] != "token 2" || after.Files["east.kubeconfig"] != before.Files["east.kubeconfig"] || !reflect.DeepEqual(after.Targets, before.Targets) {
		t.Errorf("the host is to run %+v", after)
	}
}

func TestTheNextRenewalIsLookedForwardTo(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.step("a")
	w.clock.SetTime(now.Add(30 * time.Minute))
	w.join("west")
	stored, err := w.plugins.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := targetsOf(stored.Spec.DeployTargets, []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, {ObjectMeta: metav1.ObjectMeta{Name: "west"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.reach(t.Context(), stored, clusters); !got.renew.Equal(now.Add(48*time.Minute)) || got.clusters != 2 {
		t.Errorf("renews at %s, %d clusters; want the earlier of two", got.renew, got.clusters)
	}
	w.clock.SetTime(now.Add(50 * time.Minute))
	w.fails = errors.New("no answer")
	if got := w.reach(t.Context(), stored, clusters); !got.renew.Equal(now.Add(78*time.Minute)) || got.err == nil {
		t.Errorf("renews at %s, error %v; what has failed is tried again by its error", got.renew, got.err)
	}
}

func TestATokenThatCannotBeRenewedLeavesTheTarget(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.step("a")
	before := w.host.specs["a"]
	w.clock.SetTime(now.Add(50 * time.Minute))
	w.fails = errors.New("no answer")
	if err := w.sync(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v, want one that has it tried again", err)
	}
	if !reflect.DeepEqual(w.host.specs["a"], before) {
		t.Errorf("the host is to run %+v", w.host.specs["a"])
	}
	stored, err := w.api.DeliveryV1alpha1().Plugins().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.wantReady(stored.Status, metav1.ConditionFalse, v1alpha1.PluginReasonTokenFailed, "spec.deployTargets[1]: ask for a token of ServiceAccount shop/deployer for the view of cluster \"east\": no answer; the token that it has is good until 2026-01-02T04:04:05Z")
	if events := w.told(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning TokenFailed spec.deployTargets[1]") {
		t.Errorf("told %q", events)
	}
	if err := w.own.Delivery().V1alpha1().Plugins().Informer().GetIndexer().Update(stored); err != nil {
		t.Fatal(err)
	}
	w.fails = nil
	w.wantReady(w.step("a"), metav1.ConditionTrue, v1alpha1.PluginReasonComplete, "")
}

func TestAClusterWithoutATokenIsNoTargetYet(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.fails = errors.New("no answer")
	if err := w.sync(t.Context(), "a"); err == nil {
		t.Error("it is not tried again")
	}
	if got := w.targets(); !slices.Equal(got, []string{"here"}) || len(w.host.specs["a"].Files) > 0 {
		t.Errorf("targets %v, files %v", got, w.host.specs["a"].Files)
	}
}

func TestWithoutTheServiceAccountThereIsNoTarget(t *testing.T) {
	w := newDeploying(t) // also where no cluster is selected
	const says = "spec.deployTargets[1]: there is no ServiceAccount shop/deployer"
	w.wantReady(w.step("a"), metav1.ConditionFalse, v1alpha1.PluginReasonAccountMissing, says)
	if events := w.told(); len(events) != 1 || !strings.Contains(events[0], "Warning ServiceAccountMissing "+says) {
		t.Errorf("told %q", events)
	}
	w.join("east")
	w.wantReady(w.step("a"), metav1.ConditionFalse, v1alpha1.PluginReasonAccountMissing, says)
	if got := w.targets(); !slices.Equal(got, []string{"here"}) || len(w.asked) > 0 {
		t.Errorf("targets %v, asked %v", got, w.asked)
	}
	account := w.account("1")
	w.wantReady(w.step("a"), metav1.ConditionTrue, v1alpha1.PluginReasonComplete, "")
	if got := w.targets(); !slices.Equal(got, []string{"here", "east"}) {
		t.Errorf("targets %v", got)
	}
	// The token of one that was deleted is not good for the next of its name.
	w.account("2")
	w.step("a")
	if got := w.host.specs["a"].Files["east.token"]; got != "token 2" {
		t.Errorf("the plugin has %q", got)
	}
	leaves := account.DeepCopy()
	leaves.DeletionTimestamp = &metav1.Time{Time: now}
	if err := w.Accounts.Informer().GetIndexer().Update(leaves); err != nil {
		t.Fatal(err)
	}
	w.wantReady(w.step("a"), metav1.ConditionFalse, v1alpha1.PluginReasonAccountMissing, says)
	if got := w.targets(); !slices.Equal(got, []string{"here"}) || len(w.host.specs["a"].Files) > 0 {
		t.Errorf("targets %v, files %v", got, w.host.specs["a"].Files)
	}
}

// The cache may not know yet what the logical cluster says.
func TestAnAccountThatHasJustGoneIsTold(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.fails = apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "deployer")
	w.wantReady(w.step("a"), metav1.ConditionFalse, v1alpha1.PluginReasonAccountMissing, "there is no ServiceAccount shop/deployer")
	if got := w.targets(); !slices.Equal(got, []string{"here"}) {
		t.Errorf("targets %v", got)
	}
}

func TestAPluginThatDoesNotRunHasNoTokens(t *testing.T) {
	w := newDeploying(t, "east")
	w.account("1")
	w.step("a")
	stored, err := w.plugins.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	stored = stored.DeepCopy()
	stored.Spec.Suspend = true
	if err := w.own.Delivery().V1alpha1().Plugins().Informer().GetIndexer().Update(stored); err != nil {
		t.Fatal(err)
	}
	if err := w.sync(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if spec := w.host.specs["a"]; len(spec.Files) > 0 || len(w.asked) != 1 || len(w.given) > 0 {
		t.Errorf("files %v, asked %v, given %v", spec.Files, w.asked, w.given)
	}
	shows, err := w.api.DeliveryV1alpha1().Plugins().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || meta.FindStatusCondition(shows.Status.Conditions, v1alpha1.PluginTargetsReady) != nil {
		t.Errorf("it shows %+v, %v", shows.Status.Conditions, err)
	}
	if err := w.own.Delivery().V1alpha1().Plugins().Informer().GetIndexer().Delete(stored); err != nil {
		t.Fatal(err)
	}
	if err := w.sync(t.Context(), "a"); err != nil || len(w.given) > 0 {
		t.Errorf("given %v, %v", w.given, err)
	}
}

func TestAnAccountConcernsPluginsThatWorkByItsRights(t *testing.T) {
	w := newDeploying(t)
	w.accountChanged(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}})
	w.accountChanged(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-2", Name: "deployer"}})
	if got := w.queue.Len(); got != 0 {
		t.Errorf("%d plugins are looked at because of others", got)
	}
	w.accountChanged(w.account("1"))
	if got := w.queue.Len(); got != 1 {
		t.Errorf("%d plugins are looked at, want the one", got)
	}
}

func TestTheConfigurationOfAClusterIsWhatWasSaidAndWhereItIs(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"nothing":                      {"", `{"kubeConfigPath":"/east","appStateInformer":{"namespace":"shop"}}`},
		"another namespace":            {`{"appStateInformer":{"namespace":"web"}}`, `{"appStateInformer":{"namespace":"web"},"kubeConfigPath":"/east"}`},
		"something else of live state": {`{"appStateInformer":{"includeResources":[{"kind":"Pod"}]}}`, `{"appStateInformer":{"includeResources":[{"kind":"Pod"}],"namespace":"shop"},"kubeConfigPath":"/east"}`},
		"a kubeconfig of before":       {`{"kubeConfigPath":"/mine","b":[1.5]}`, `{"appStateInformer":{"namespace":"shop"},"b":[1.5],"kubeConfigPath":"/east"}`},
	} {
		got, err := reachedBy(json.RawMessage(test.said), "/east", "shop")
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
	if _, err := reachedBy(json.RawMessage(`[1]`), "/east", "shop"); err == nil {
		t.Error("a list is a configuration")
	}
}
