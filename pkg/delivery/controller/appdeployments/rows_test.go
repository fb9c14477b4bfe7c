package appdeployments

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// Rows of KubeVela's document that are about the whole of it.

// relabel gives a cluster other labels.
func (w *world) relabel(cluster string, labels map[string]string) {
	w.Helper()
	found, err := w.ours.Manifold().V1alpha1().Clusters().Lister().Get(cluster)
	if err != nil {
		w.Fatal(err)
	}
	changed := found.DeepCopy()
	changed.Labels = labels
	w.add(w.ours.Manifold().V1alpha1().Clusters().Informer(), changed)
}

// K19: the kind Cluster is Manifold's, and it is selected by its metadata.labels, as they are at the moment.
func TestK19ClustersAreSelectedByTheLabelsThatTheyHave(t *testing.T) {
	w := shopWorld(t)
	const production = "{name: 1, reference: example-app-v1, placement: [{clusterSelector: {labels: {usage: production}}}]}"
	w.apply("{" + spec(production) + "}")
	w.settle()
	w.want("v1 east=5")
	w.relabel("west", map[string]string{"usage": "production"})
	w.settle()
	w.want("v1 east=5") // it stays where it is
	w.relabel("east", map[string]string{"usage": "testing"})
	w.settle()
	w.clock.Step(5 * time.Second)
	w.settle()
	w.want("v1 west=5")
}

// silence has a cluster not answer any more, for a reason.
func (w *world) silence(cluster, reason string) {
	w.Helper()
	found, err := w.ours.Manifold().V1alpha1().Clusters().Lister().Get(cluster)
	if err != nil {
		w.Fatal(err)
	}
	changed := found.DeepCopy()
	changed.Status.Conditions = nil
	for _, kind := range []string{manifold.ClusterReady, manifold.ClusterAnswering} {
		changed.Status.Conditions = append(changed.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: reason})
	}
	w.add(w.ours.Manifold().V1alpha1().Clusters().Informer(), changed)
	w.dead[cluster] = true
}

// left is what west reports of Deployments that are not to be there.
func (w *world) left() string {
	var out []string
	for _, obj := range w.informer(deployments).GetIndexer().List() {
		of := obj.(*appsv1.Deployment)
		if _, decided := identity.DecisionOf(of)["west"]; decided {
			continue
		}
		if entry, has := identity.BreakdownOf(of)["west"]; has {
			out = append(out, fmt.Sprintf("%d of %s", entry.Replicas, of.Name))
		}
	}
	return strings.Join(out, ", ")
}

func TestK27InTheOwnClusterNothingIsDistributed(t *testing.T) {
	for name, revision := range map[string]string{
		"without a placement":    "{name: 1, reference: example-app-v1}",
		"without a selector":     "{name: 1, reference: example-app-v1, placement: [{distribution: {weight: 7}}]}",
		"without a distribution": "{name: 1, reference: example-app-v1, placement: [{clusterSelector: {name: west}}]}",
	} {
		t.Run(name, func(t *testing.T) {
			w := shopWorld(t)
			w.apply("{" + spec(revision) + "}")
			w.settle()
			w.want("v1 west=5") // as its own workloads say
		})
	}
}

func TestK30TheLossOfAClusterLeavesTheOthersServing(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	shared := func() string {
		return fmt.Sprint(w.customs[wantedKey{"VirtualService", "example-app"}].Object["spec"])
	}
	before := shared()
	w.silence("west", "Unreachable")
	w.writes = nil
	w.restart()
	w.settle()
	w.want("v1 east=3 west=2, v2 west=5")
	if after := shared(); after != before {
		t.Errorf("requests went as %s, and go as %s", before, after)
	}
	for _, write := range w.writes {
		t.Errorf("written is %s", write)
	}
	// Without it, all that it ran is ready elsewhere before it is gone there.
	w.apply("{" + spec(strings.Replace(one, ", {distribution: {weight: 50}}", "", 1), strings.Replace(two, "name: west", "name: east", 1)) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.clock.Step(5 * time.Second)
	w.settle()
	w.want("v1 east=5, v2 east=5")
	w.dead["west"] = false // it comes back later, and is cleaned up
	w.settle()
	if got := w.left(); got != "" {
		t.Errorf("west has %s still", got)
	}
}

func TestK38EachClusterRunsTheNumberOfReplicasThatIsStated(t *testing.T) {
	w := shopWorld(t)
	stated := "{name: 1, reference: example-app-v1, placement: [{clusterSelector: {name: east}, distribution: {replicas: 7}}, {clusterSelector: {name: west}, distribution: {replicas: 2}}]}"
	w.apply("{" + spec(stated) + "}")
	w.settle()
	w.want("v1 east=7 west=2")
	var told []string
	for _, cluster := range w.status().Placement[0].Clusters {
		told = append(told, fmt.Sprintf("%s %d/%d", cluster.Cluster, cluster.Ready, cluster.Wanted))
	}
	if !slices.Equal(told, []string{"east 7/7", "west 2/2"}) {
		t.Errorf("told is %v", told)
	}
}

func TestK39RevisionsLiveInDifferentClustersAtOnce(t *testing.T) {
	w := shopWorld(t)
	in := func(revision int, cluster string) string {
		return fmt.Sprintf("{name: %d, ref: example-app-v%d, placement: [{clusterSelector: {name: %s}}]}", revision, revision, cluster)
	}
	w.apply("{" + spec(in(1, "east"), in(2, "west")) + "}")
	w.settle()
	w.want("v1 east=5, v2 west=5")
	w.apply("{" + spec(in(1, "west"), in(2, "east")) + "}") // and change places
	w.settle()
	w.clock.Step(5 * time.Second)
	w.settle()
	w.want("v1 west=5, v2 east=5")
}

func TestK33APercentIsFollowedWithoutAnotherPod(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	for _, percents := range [][2]int{{40, 60}, {0, 100}, {100, 0}} {
		w.writes = nil
		w.apply("{" + spec(one, two) + fmt.Sprintf(rules, percents[0], percents[1]) + "}")
		w.settle()
		if len(w.writes) == 0 || slices.ContainsFunc(w.writes, func(write string) bool { return write != "VirtualService/example-app" }) {
			t.Errorf("%v: written are %v, want the rules alone", percents, w.writes)
		}
		w.want("v1 east=3 west=2, v2 west=5")
		w.says(oam.ConditionRouted, metav1.ConditionTrue, "")
	}
}

func TestK37RulesAreChangedInPlaceAndGoWithTheLastOfThem(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	uid := w.customs[wantedKey{"VirtualService", "example-app"}].GetUID()
	w.apply("{" + spec(one, two) + ", trafficRules: [{name: web, match: [{uri: {prefix: /web}}], weightedTargets: [{revisionName: 1, percent: 100}]}, " +
		"{name: mobile, match: [{uri: {prefix: /mobile}}], weightedTargets: [{revisionName: 2, percent: 100}]}]}")
	w.settle()
	now := w.customs[wantedKey{"VirtualService", "example-app"}]
	rules, _, _ := unstructured.NestedSlice(now.Object, "spec", "http")
	if now.GetUID() != uid || len(rules) != 2 { // K2: two rules hold different splits at once
		t.Errorf("it is %s with %v", now.GetUID(), rules)
	}
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	if len(w.customs) > 0 {
		t.Errorf("left are %v", w.customs)
	}
}

// A bad credential is that of a cluster that answers, and lets nobody in.
func TestABadCredentialIsTheTroubleOfItsClusterAlone(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + fmt.Sprintf(strings.Replace(rules, ", {revisionName: 2, percent: %d}", "", 1), 100) + "}")
	w.settle()
	before := fmt.Sprint(w.customs[wantedKey{"VirtualService", "example-app"}].Object["spec"])
	w.silence("west", "CredentialRefused")
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.says(oam.ConditionReady, metav1.ConditionFalse, `in cluster "west"`)
	for _, revision := range w.status().Placement {
		for _, cluster := range revision.Clusters {
			if (cluster.Message != "") != (cluster.Cluster == "west") {
				t.Errorf("revision %s in %s: %+v", revision.Revision, cluster.Cluster, cluster)
			}
		}
	}
	if after := fmt.Sprint(w.customs[wantedKey{"VirtualService", "example-app"}].Object["spec"]); after != before {
		t.Errorf("requests went as %s, and go as %s", before, after)
	}
}
