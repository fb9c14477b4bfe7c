package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

func TestAJoinedClusterTellsWhatItIs(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north", "--label", "region=arctic")
	// The command returns when the cluster is ready; nothing is to be waited for.
	c := membership.Get(s, "north")
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason == "" || ready.Message == "" {
		t.Errorf("condition Ready is %+v, want True with a reason and a message", ready)
	}
	below := s.Side("north")
	version, err := below.Kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if c.Status.KubernetesVersion != version.GitVersion {
		t.Errorf("version %q, want %q", c.Status.KubernetesVersion, version.GitVersion)
	}
	for _, kind := range []string{"Deployment.v1.apps", "Pod.v1.", "Ingress.v1.networking.k8s.io"} {
		if !slices.Contains(c.Status.Kinds, kind) && !slices.Contains(c.Status.Kinds, strings.TrimSuffix(kind, ".")) {
			t.Errorf("served kinds lack %s: %q", kind, c.Status.Kinds)
		}
	}
	system, err := below.Kube.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Status.UID != string(system.UID) {
		t.Errorf("UID %q, want that of the namespace kube-system, %q", c.Status.UID, system.UID)
	}
	if c.Labels["region"] != "arctic" || c.Status.Topology[corev1.LabelTopologyRegion] != "north" {
		t.Errorf("labels %v, topology %v", c.Labels, c.Status.Topology)
	}
	checkCapacity(s, below)

	t.Run("a Node mirrors it", func(t *testing.T) { testNode(s.Subtest(t)) })
	t.Run("it is listed", func(t *testing.T) { testList(s.Subtest(t), version.GitVersion) })
	t.Run("its Lease is renewed", func(t *testing.T) {
		s := s.Subtest(t)
		system := s.Logical.In(v1alpha1.SystemNamespace)
		first := framework.Await(system, "cluster-north", "is there", framework.Exists[*coordinationv1.Lease]).Spec.RenewTime
		framework.Await(system, "cluster-north", "is renewed", func(l *coordinationv1.Lease) bool { return l.Spec.RenewTime.After(first.Time) })
	})
	t.Run("its figures follow what happens there", func(t *testing.T) { testFigures(s.Subtest(t)) })
}

// checkCapacity compares the figures of the Cluster with the sums over its nodes and pods.
func checkCapacity(s *framework.Scenario, below *framework.Side) {
	s.Helper()
	nodes, err := below.Kube.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	c := membership.Get(s, below.Name)
	if want := int32(len(nodes.Items)); c.Status.Nodes.Total != want || c.Status.Nodes.Ready != want {
		s.Errorf("nodes %+v, want %d, all ready", c.Status.Nodes, want)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		var capacity, allocatable resource.Quantity
		for _, node := range nodes.Items {
			capacity.Add(node.Status.Capacity[name])
			allocatable.Add(node.Status.Allocatable[name])
		}
		if got := c.Status.Capacity[name]; got.Cmp(capacity) != 0 {
			s.Errorf("capacity: %s %s, want %s", &got, name, &capacity)
		}
		if got := c.Status.Allocatable[name]; got.Cmp(allocatable) != 0 {
			s.Errorf("allocatable: %s %s, want %s", &got, name, &allocatable)
		}
		if _, ok := c.Status.Requested[name]; !ok {
			s.Errorf("it does not say how much %s is requested", name)
		}
	}
}

func testNode(s *framework.Scenario) {
	c := membership.Get(s, "north")
	node := framework.Await(s.Logical, "north", "is ready", func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		want, got := c.Status.Allocatable[name], node.Status.Allocatable[name]
		if got.Cmp(want) != 0 {
			s.Errorf("the Node has %s %s, want %s", &got, name, &want)
		}
	}
	if node.Status.NodeInfo.KubeletVersion != c.Status.KubernetesVersion {
		s.Errorf("the Node has version %q, want %q", node.Status.NodeInfo.KubeletVersion, c.Status.KubernetesVersion)
	}
	expect.Says(s.T, s.Logical.Kubectl("get", "nodes", "north"), "Ready", "cluster", c.Status.KubernetesVersion)
	expect.Says(s.T, s.Logical.Kubectl("describe", "node", "north"), "north", "Allocatable")
}

func testList(s *framework.Scenario, version string) {
	for line := range strings.Lines(s.Logical.CLI("cluster", "list")) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "NAME":
			expect.Says(s.T, line, "READY", "SCHEDULABLE", "VERSION", "NODES", "CPU", "MEMORY", "AGE")
		case "north", "east", "west":
			ready, all, _ := strings.Cut(fields[4], "/")
			if fields[1] != "True" || fields[2] != "True" || fields[3] != version || ready != all {
				s.Errorf("the row is %q", line)
			}
		default:
			s.Errorf("there is no cluster %q", fields[0])
		}
	}
	if got := s.Logical.CLI("cluster", "list", "-l", "region=arctic", "-o", "name"); got != "cluster.manifold.dev/north\n" {
		s.Errorf("selected by label: %q", got)
	}
	expect.Says(s.T, s.Logical.CLI("cluster", "list", "-o", "wide"), "REGION", "REASON", "ClusterReady")
	list := v1alpha1.ClusterList{}
	if err := json.Unmarshal([]byte(s.Logical.CLI("cluster", "list", "-o", "json")), &list); err != nil || len(list.Items) != 3 {
		s.Errorf("as JSON: %d clusters, %v", len(list.Items), err)
	}
}

// testFigures has somebody else use the cluster, and change its nodes.
func testFigures(s *framework.Scenario) {
	below, before := s.Side("north").In("default"), membership.Get(s, "north").Status
	less := func(of, by resource.Quantity) resource.Quantity { of.Sub(by); return of }
	more := func(of, by resource.Quantity) resource.Quantity { of.Add(by); return of }
	is := func(got, want resource.Quantity) bool { return got.Cmp(want) == 0 }

	below.KubectlInput(manifests.Edited(manifests.Deployment("other-owner", 3), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	}), "create", "-f", "-")
	requested := more(before.Requested[corev1.ResourceCPU], resource.MustParse("6"))
	framework.Await(s.Logical, "north", "counts the pods of others", func(c *v1alpha1.Cluster) bool {
		return is(c.Status.Requested[corev1.ResourceCPU], requested) &&
			is(c.Status.Requested[corev1.ResourcePods], more(before.Requested[corev1.ResourcePods], resource.MustParse("3")))
	})
	below.Kubectl("delete", "deployment", "other-owner", "--cascade=foreground", "--timeout=60s")
	framework.Await(s.Logical, "north", "counts them no more", func(c *v1alpha1.Cluster) bool {
		return is(c.Status.Requested[corev1.ResourceCPU], before.Requested[corev1.ResourceCPU])
	})

	each := resource.MustParse("32")
	below.Kubectl("cordon", "north-0")
	framework.Await(s.Logical, "north", "has less to allocate, and the same capacity", func(c *v1alpha1.Cluster) bool {
		return c.Status.Nodes.Ready == before.Nodes.Ready-1 && c.Status.Nodes.Total == before.Nodes.Total &&
			is(c.Status.Allocatable[corev1.ResourceCPU], less(before.Allocatable[corev1.ResourceCPU], each)) &&
			is(c.Status.Capacity[corev1.ResourceCPU], before.Capacity[corev1.ResourceCPU])
	})
	below.Kubectl("uncordon", "north-0")
	if err := s.Environment.Clusters["north"].AddNodes(s.Context(), 1); err != nil {
		s.Fatal(err)
	}
	framework.Await(s.Logical, "north", "has one more node", func(c *v1alpha1.Cluster) bool {
		return c.Status.Nodes.Ready == before.Nodes.Ready+1 && c.Status.Nodes.Total == before.Nodes.Total+1 &&
			is(c.Status.Capacity[corev1.ResourceCPU], more(before.Capacity[corev1.ResourceCPU], each)) &&
			is(c.Status.Allocatable[corev1.ResourceCPU], more(before.Allocatable[corev1.ResourceCPU], each))
	})
}

func TestJoiningAgainIsNoChange(t *testing.T) {
	s := suite.Fragile(t)
	args := membership.Join(s, "north", "--label", "first=yes")
	below := s.Side("north")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "north"))
	expect.RolledOut(s, "web", 2)
	made := func() []membership.Object { // but for what the token ends with, which is another one each time
		all := membership.Objects(t.Context(), t, below.API, membership.Managed)
		kept := slices.DeleteFunc(slices.Clone(all), func(f membership.Object) bool { return f.Resource.Resource == "secrets" })
		if len(all) != len(kept)+1 {
			t.Errorf("joining made %v, want one Secret among it", all)
		}
		return kept
	}
	before, pieces := membership.Get(s, "north"), made()
	kept, pods := membership.Objects(t.Context(), t, below.API, membership.Owned(s)), framework.PodUIDs(s, below, "web")

	expect.Says(t, s.Logical.CLI(append(args, "--label", "second=yes")...), "already joined")
	after := membership.Get(s, "north")
	if after.UID != before.UID || after.Labels["first"] != "yes" || after.Labels["second"] != "yes" || !membership.Readiness(metav1.ConditionTrue)(after) {
		t.Errorf("it was\n%v\nand is\n%v", before, after)
	}
	for what, lists := range map[string][2][]membership.Object{
		"what joining made": {pieces, made()},
		"what runs there":   {kept, membership.Objects(t.Context(), t, below.API, membership.Owned(s))},
	} {
		if !slices.EqualFunc(lists[0], lists[1], func(a, b membership.Object) bool { return a.String() == b.String() && a.UID == b.UID }) {
			t.Errorf("%s was %v and is %v", what, lists[0], lists[1])
		}
	}
	if got := framework.PodUIDs(s, below, "web"); !slices.Equal(got, pods) {
		t.Errorf("the pods were %v and are %v", pods, got)
	}
	// It still works.
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	expect.RolledOut(s, "web", 3)
}

func TestTheStoredCredentialHasLeastRights(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north")
	file := membership.StoredCredential(s, "north")
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.AuthInfos) != 1 || len(config.Clusters) != 1 {
		t.Errorf("the stored kubeconfig has %d users and %d clusters, want one each", len(config.AuthInfos), len(config.Clusters))
	}
	for name, user := range config.AuthInfos {
		if len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0 || user.ClientCertificate != "" || user.Token == "" {
			t.Errorf("user %q is not the bearer of a token alone", name)
		}
	}
	syncer := s.Side("north").As(file)
	expect.Says(t, syncer.Kubectl("auth", "whoami"), "system:serviceaccount:manifold-system:manifold-syncer-")
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", v1alpha1.SystemNamespace} {
		expect.Refused(t, syncer.In(namespace).Try("create", "configmap", "mine"), "Manifold does not write in namespace "+namespace)
		expect.Refused(t, syncer.In(namespace).TryInput(manifests.Deployment("mine", 1), "create", "-f", "-"), "Manifold does not write in namespace "+namespace)
		expect.Refused(t, syncer.Try("label", "namespace", namespace, "mine=yes"), "Manifold does not write in namespace "+namespace)
		expect.Refused(t, syncer.Try("delete", "namespace", namespace), "forbidden") // Kubernetes itself protects some of them.
	}
	expect.Refused(t, syncer.In("kube-system").Try("delete", "serviceaccount", "default"), "Manifold does not write in namespace kube-system")
	expect.Refused(t, syncer.Try("create", "namespace", "kube-mine"), "Manifold does not own a new object of namespaces")
	for _, right := range [][]string{
		{"create", "clusterroles"}, {"update", "rolebindings"}, {"get", "secrets"}, {"list", "secrets"}, {"watch", "secrets"}, {"delete", "nodes"}, {"patch", "nodes"}, {"create", "pods", "--subresource=binding"},
		{"delete", "validatingadmissionpolicies"}, {"impersonate", "users"}, {"create", "serviceaccounts", "--subresource=token"}, {"*", "*"},
	} {
		if result := syncer.Try(append([]string{"auth", "can-i", "--all-namespaces"}, right...)...); strings.TrimSpace(result.Stdout) != "no" {
			t.Errorf("may it %v? %s", right, result)
		}
	}
	// What it is for, it may.
	syncer.In("default").KubectlInput("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n  labels: {"+v1alpha1.LabelLogicalCluster+": "+framework.IdentityOf(t, s.Environment)+"}\n",
		"create", "-f", "-")
	syncer.In("default").Kubectl("delete", "configmap", "mine")
}

func TestNodesAreNotForUsersToWrite(t *testing.T) {
	s := suite.Fragile(t)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"manifold cluster remove west", []string{"delete", "node", "west"}},
		{`edit the Cluster "west"`, []string{"taint", "node", "west", "mine=yes:NoSchedule"}},
		{`edit the Cluster "west"`, []string{"label", "node", "west", "mine=yes"}},
		{`edit the Cluster "west"`, []string{"annotate", "node", "west", "mine=yes"}},
		{"manifold cluster", []string{"patch", "node", "west", "--subresource=status", "-p", `{"status":{"capacity":{"cpu":"1"}}}`}},
	} {
		expect.Refused(t, s.Logical.Try(test.args...), test.want)
	}
	// kubectl prints what these two are told and ends as if nothing had happened, as on any cluster.
	for _, command := range []string{"cordon", "drain"} {
		expect.Says(t, s.Logical.Try(command, "west").Stderr, "manifold cluster cordon west")
	}
	expect.Refused(t, s.Logical.TryInput("apiVersion: v1\nkind: Node\nmetadata:\n  name: mine\n", "create", "-f", "-"), "manifold cluster join NAME")
	if membership.Get(s, "west").Spec.Unschedulable {
		t.Error("the cluster is cordoned")
	}
	if nodes := strings.Fields(s.Logical.Kubectl("get", "nodes", "-o", "name")); fmt.Sprint(nodes) != "[node/east node/west]" {
		t.Errorf("nodes %v, want one for each cluster", nodes)
	}
}
