package access

import (
	"context"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
)

// stolen is the credential that the logical cluster has for a cluster, in the hands of somebody else.
type stolen struct {
	kubernetes.Interface
	// id marks what the logical cluster owns, account is the name of its ServiceAccount.
	id, account string
	// home is a namespace of ours, foreign is one of somebody else's, and so is everything there that is called "stranger".
	home, foreign string
	// stream tries to run a command in a pod.
	stream func(ctx context.Context, namespace, pod string) error
}

func steal(s *framework.Scenario, side *framework.Side) *stolen {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", membership.StoredCredential(s, side.Name))
	if err != nil {
		s.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	out := &stolen{Interface: client, id: framework.IdentityOf(s.T, s.Environment), home: s.Namespace, foreign: "foreign-" + s.Namespace}
	out.account = "manifold-syncer-" + out.id[:8]
	out.stream = func(ctx context.Context, namespace, pod string) error {
		request := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, scheme.ParameterCodec)
		executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
		if err != nil {
			return err
		}
		var sink strings.Builder
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &sink})
	}
	return out
}

// mark is the label of what we own.
func (c *stolen) mark() map[string]string {
	return map[string]string{v1alpha1.LabelLogicalCluster: c.id}
}

// named is the metadata of a new object, marked as ours.
func (c *stolen) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: c.mark()}
}

// label patches the labels of a stranger's ConfigMap.
func (c *stolen) label(ctx context.Context, namespace string, labels map[string]string) error {
	patch, err := yaml.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	if patch, err = yaml.YAMLToJSON(patch); err != nil {
		return err
	}
	_, err = c.CoreV1().ConfigMaps(namespace).Patch(ctx, "stranger", types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c *stolen) pod(account, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: c.named("stolen"), Spec: corev1.PodSpec{
		ServiceAccountName: account, NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}},
	}}
}

func (c *stolen) deployment(account string) *appsv1.Deployment {
	labels := map[string]string{"app": "stolen"}
	meta := c.named("stolen")
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: c.pod(account, "").Spec},
	}}
}

func (c *stolen) token(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference) error {
	_, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
	return err
}

// bind tries to bind a ServiceAccount to a ClusterRole in a namespace.
func (c *stolen) bind(ctx context.Context, namespace, name, role, account string) error {
	_, err := c.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: c.named(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: account}},
	}, metav1.CreateOptions{})
	return err
}

// attacks are what a thief of the credential tries, each with what the cluster says to it: "cannot" of a right that it has not, "Manifold" of
// one that the policies bound.
var attacks = map[string]struct {
	try  func(context.Context, *stolen) error
	want string
}{
	"write in a stranger's namespace": {want: "Manifold does not write in namespace foreign-", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().ConfigMaps(c.foreign).Create(ctx, &corev1.ConfigMap{ObjectMeta: c.named("stolen")}, metav1.CreateOptions{})
		return err
	}},
	"write in kube-system": {want: "Manifold does not write in namespace kube-system", try: func(ctx context.Context, c *stolen) error {
		_, err := c.AppsV1().Deployments("kube-system").Create(ctx, c.deployment(""), metav1.CreateOptions{})
		return err
	}},
	"write without the mark": {want: "Manifold does not own a new object of configmaps", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().ConfigMaps(c.home).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}}, metav1.CreateOptions{})
		return err
	}},
	"change a stranger's ConfigMap in our namespace": {want: "Manifold does not own configmaps stranger", try: func(ctx context.Context, c *stolen) error {
		return c.label(ctx, c.home, map[string]string{"a": "b"})
	}},
	"mark a stranger's ConfigMap": {want: "Manifold does not own configmaps stranger", try: func(ctx context.Context, c *stolen) error {
		return c.label(ctx, c.home, c.mark())
	}},
	"mark a stranger's ConfigMap as an orphan": {want: "Manifold does not own configmaps stranger", try: func(ctx context.Context, c *stolen) error {
		labels := c.mark()
		maps.Copy(labels, map[string]string{v1alpha1.LabelOrphan: "true"})
		return c.label(ctx, "default", labels)
	}},
	"delete a stranger's Deployment in our namespace": {want: "Manifold does not own deployments stranger", try: func(ctx context.Context, c *stolen) error {
		return c.AppsV1().Deployments(c.home).Delete(ctx, "stranger", metav1.DeleteOptions{})
	}},
	"delete a stranger's Deployment in default": {want: "Manifold does not own deployments stranger", try: func(ctx context.Context, c *stolen) error {
		return c.AppsV1().Deployments("default").Delete(ctx, "stranger", metav1.DeleteOptions{})
	}},
	"delete a stranger's pod in our namespace": {want: "Manifold does not own pods stranger", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().Pods(c.home).Delete(ctx, "stranger", metav1.DeleteOptions{})
	}},
	"delete a stranger's claim in our namespace": {want: "Manifold does not own persistentvolumeclaims stranger", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().PersistentVolumeClaims(c.home).Delete(ctx, "stranger", metav1.DeleteOptions{})
	}},
	"evict a stranger's pod": {want: "Manifold does not write in namespace foreign-", try: func(ctx context.Context, c *stolen) error {
		return c.PolicyV1().Evictions(c.foreign).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.foreign, Name: "stranger"}})
	}},
	"run a command in a stranger's pod": {want: "Manifold does not write in namespace foreign-", try: func(ctx context.Context, c *stolen) error {
		return c.stream(ctx, c.foreign, "stranger")
	}},
	"reach a stranger's pod by the proxy": {want: "Manifold does not write in namespace foreign-", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().RESTClient().Get().Namespace(c.foreign).Resource("pods").Name("stranger:80").SubResource("proxy").Do(ctx).Error()
	}},
	"reach a node by the proxy": {want: "cannot", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().RESTClient().Get().Resource("nodes").Name("east-0").SubResource("proxy").Do(ctx).Error()
	}},
	"delete a stranger's namespace": {want: "Manifold does not own namespaces foreign-", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().Namespaces().Delete(ctx, c.foreign, metav1.DeleteOptions{})
	}},
	"mark a stranger's namespace": {want: "Manifold does not own namespaces foreign-", try: func(ctx context.Context, c *stolen) error {
		patch := `{"metadata":{"labels":{"` + v1alpha1.LabelLogicalCluster + `":"` + c.id + `"}}}`
		_, err := c.CoreV1().Namespaces().Patch(ctx, c.foreign, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}},
	"mark the namespace default": {want: "Manifold does not own namespaces default", try: func(ctx context.Context, c *stolen) error {
		patch := `{"metadata":{"labels":{"` + v1alpha1.LabelLogicalCluster + `":"` + c.id + `"}}}`
		_, err := c.CoreV1().Namespaces().Patch(ctx, "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}},
	"give a namespace of ours to another logical cluster": {want: "Manifold does not own namespaces", try: func(ctx context.Context, c *stolen) error {
		patch := `{"metadata":{"labels":{"` + v1alpha1.LabelLogicalCluster + `":"another"}}}`
		_, err := c.CoreV1().Namespaces().Patch(ctx, c.home, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}},
	"run a pod as a stranger in default": {want: "Manifold does not own ServiceAccount stranger", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().Pods("default").Create(ctx, c.pod("stranger", ""), metav1.CreateOptions{})
		return err
	}},
	"run a Deployment as a stranger in default": {want: "Manifold does not own ServiceAccount stranger", try: func(ctx context.Context, c *stolen) error {
		_, err := c.AppsV1().Deployments("default").Create(ctx, c.deployment("stranger"), metav1.CreateOptions{})
		return err
	}},
	"make a token of a stranger": {want: "cannot create resource", try: func(ctx context.Context, c *stolen) error {
		return c.token(ctx, "default", "stranger", nil)
	}},
	"make a token of a ServiceAccount of ours": {want: "cannot create resource", try: func(ctx context.Context, c *stolen) error {
		return c.token(ctx, c.home, "default", nil)
	}},
	"make a token of its own that ends with nothing": {want: "Manifold does not write in namespace manifold-system", try: func(ctx context.Context, c *stolen) error {
		return c.token(ctx, v1alpha1.SystemNamespace, c.account, nil)
	}},
	"make a token of its own that ends with a namespace's pod": {want: "Manifold does not write in namespace manifold-system", try: func(ctx context.Context, c *stolen) error {
		return c.token(ctx, v1alpha1.SystemNamespace, c.account, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "stranger"})
	}},
	"make a token of another ServiceAccount there": {want: "cannot create resource", try: func(ctx context.Context, c *stolen) error {
		return c.token(ctx, v1alpha1.SystemNamespace, "default", nil)
	}},
	"have the cluster put a stranger's token into a Secret": {want: "Manifold may not create Secrets of type", try: func(ctx context.Context, c *stolen) error {
		secret := &corev1.Secret{ObjectMeta: c.named("stolen"), Type: corev1.SecretTypeServiceAccountToken}
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: "stranger"}
		_, err := c.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{})
		return err
	}},
	"lead the cluster away from its API server": {want: "Manifold may not write the endpoints of the cluster's API server", try: func(ctx context.Context, c *stolen) error {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: c.named("stolen"), AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}}
		slice.Labels[discoveryv1.LabelServiceName] = "kubernetes"
		_, err := c.DiscoveryV1().EndpointSlices("default").Create(ctx, slice, metav1.CreateOptions{})
		return err
	}},
	"read the Secrets of kube-system": {want: "cannot list resource", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		return err
	}},
	"read all Secrets that carry its mark": {want: "cannot list resource", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelLogicalCluster + "=" + c.id})
		return err
	}},
	"read a stranger's Secret in default": {want: "cannot get resource", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().Secrets("default").Get(ctx, "stranger", metav1.GetOptions{})
		return err
	}},
	"read a stranger's Secret by a change that changes nothing": {want: "Manifold does not own secrets stranger", try: func(ctx context.Context, c *stolen) error {
		_, err := c.CoreV1().Secrets("default").Patch(ctx, "stranger", types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}},
	"read a stranger's Secret by deleting it for a try": {want: "Manifold does not own secrets stranger", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().Secrets("default").Delete(ctx, "stranger", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}},
	"take the right to read Secrets in kube-system": {want: "Manifold does not write in namespace kube-system", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, "kube-system", c.account+"-secrets", c.account+"-secrets", c.account)
	}},
	"take it in a stranger's namespace": {want: "Manifold does not write in namespace foreign-", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, c.foreign, c.account+"-secrets", c.account+"-secrets", c.account)
	}},
	"take it in default": {want: "Manifold may not write rolebindings", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, "default", c.account+"-secrets", c.account+"-secrets", c.account)
	}},
	"take it by another name": {want: "Manifold may not write rolebindings", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, c.home, "stolen", c.account+"-secrets", c.account)
	}},
	"give it to somebody else": {want: "Manifold may not write rolebindings", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, c.home, c.account+"-secrets", c.account+"-secrets", "stranger")
	}},
	"take another role by its name": {want: "not currently held", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, c.home, c.account+"-secrets", "cluster-admin", c.account)
	}},
	"take a role that gives it nothing new": {want: "Manifold may not write rolebindings", try: func(ctx context.Context, c *stolen) error {
		return c.bind(ctx, c.home, c.account+"-secrets", c.account, "stranger")
	}},
	"take it for the whole cluster": {want: "cannot create resource", try: func(ctx context.Context, c *stolen) error {
		_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: c.named("stolen"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.account + "-secrets"},
		}, metav1.CreateOptions{})
		return err
	}},
	"grant rights": {want: "cannot create resource", try: func(ctx context.Context, c *stolen) error {
		_, err := c.RbacV1().Roles(c.home).Create(ctx, &rbacv1.Role{ObjectMeta: c.named("stolen")}, metav1.CreateOptions{})
		return err
	}},
	"widen its own role": {want: "cannot", try: func(ctx context.Context, c *stolen) error {
		_, err := c.RbacV1().ClusterRoles().Patch(ctx, c.account, types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{})
		return err
	}},
	"take its fence away": {want: "cannot", try: func(ctx context.Context, c *stolen) error {
		return c.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, c.account, metav1.DeleteOptions{})
	}},
	"read other roles": {want: "cannot", try: func(ctx context.Context, c *stolen) error {
		_, err := c.RbacV1().ClusterRoles().Get(ctx, "cluster-admin", metav1.GetOptions{})
		return err
	}},
	"delete its own ServiceAccount": {want: "Manifold does not write in namespace manifold-system", try: func(ctx context.Context, c *stolen) error {
		return c.CoreV1().ServiceAccounts(v1alpha1.SystemNamespace).Delete(ctx, c.account, metav1.DeleteOptions{})
	}},
}

// TestAStolenCredentialWritesNothingOfStrangers tries with the credential of a cluster what its admin was promised that it cannot do.
func TestAStolenCredentialWritesNothingOfStrangers(t *testing.T) {
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	thief := steal(s, s.East)
	check := strangers(s, thief)
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			err := attack.try(t.Context(), thief)
			// What cannot be upgraded tells why in words alone.
			forbidden := apierrors.IsForbidden(err) || strings.Contains(errorOf(err), "is forbidden: ")
			if !forbidden || !strings.Contains(err.Error(), attack.want) {
				t.Errorf("the cluster says %v, want that it is forbidden: %s", err, attack.want)
			}
		})
	}
	check()
	// What it is for, it may: with its mark, where that is at home.
	own, err := thief.CoreV1().ConfigMaps(thief.home).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: thief.named("own")}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || own.Name != "own" {
		t.Errorf("what it is for: %v", err)
	}
	if err := thief.stream(t.Context(), thief.home, "nobody"); !apierrors.IsNotFound(err) && !strings.Contains(errorOf(err), "not found") {
		t.Errorf("a command in a pod of its namespace that is not there: %v", err)
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// strangers makes what is somebody else's, and returns what checks that all of it is as it was.
func strangers(s *framework.Scenario, c *stolen) (check func()) {
	s.Helper()
	s.East.Kubectl("create", "namespace", c.foreign)
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, s.East.API, "delete", "namespace", c.foreign, "--wait=false", "--ignore-not-found")
		s.Environment.CleanupIn(s.T, s.East.API, "delete", "deployment/stranger", "configmap/stranger", "secret/stranger", "serviceaccount/stranger", "-n", "default",
			"--wait=false", "--ignore-not-found")
	})
	var all []membership.Bystander
	for _, namespace := range []string{c.foreign, c.home, "default"} {
		side := s.East.In(namespace)
		side.KubectlInput(manifests.Deployment("stranger", 0), "create", "-f", "-")
		side.Kubectl("create", "configmap", "stranger", "--from-literal=color=red")
		side.Kubectl("create", "secret", "generic", "stranger", "--from-literal=color=red")
		side.Kubectl("create", "serviceaccount", "stranger")
		if namespace != "default" {
			side.Kubectl("run", "stranger", "--image=stranger:1", `--overrides={"spec":{"nodeSelector":{"no":"where"}}}`)
			side.KubectlInput(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"stranger"},"spec":{"accessModes":["ReadWriteOnce"],
				"storageClassName":"none","resources":{"requests":{"storage":"1Gi"}}}}`, "create", "-f", "-")
		}
		framework.Await(side, "stranger", "has been seen by its controller", func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == d.Generation })
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		o, err := side.Dynamic.Resource(resource).Namespace(namespace).Get(s.Context(), "stranger", metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, membership.Bystander{Side: side, Was: o})
	}
	return func() {
		s.Helper()
		for _, b := range all {
			if err := b.Changed(s.Context()); err != nil {
				s.Error(err)
			}
		}
		for _, namespace := range []string{c.foreign, c.home, "default"} {
			framework.Await(s.East.In(namespace), "stranger", "is still there", framework.Exists[*appsv1.Deployment])
		}
		for _, namespace := range []string{c.foreign, c.home} {
			framework.Await(s.East.In(namespace), "stranger", "is still there", framework.Exists[*corev1.Pod])
			framework.Await(s.East.In(namespace), "stranger", "is still there", framework.Exists[*corev1.PersistentVolumeClaim])
		}
	}
}
