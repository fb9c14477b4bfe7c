package hostile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// allVerbs are those that a request can have, and those that name a right of their own.
var allVerbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
	"impersonate", "bind", "escalate", "approve", "sign", "attest", "use", v1alpha1.VerbOverride,
}

// served returns every resource and subresource of an API server, once for each group.
func (a *arena) served(api *framework.API) []schema.GroupResource {
	a.Helper()
	_, lists, err := api.Kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		a.Fatalf("ask %s what it serves: %v", api.Name, err)
	}
	out := sets.New[schema.GroupResource]()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			a.Fatal(err)
		}
		for _, r := range list.APIResources {
			out.Insert(schema.GroupResource{Group: version.Group, Resource: r.Name})
		}
	}
	return out.UnsortedList()
}

// reporting is all that the authorizer lets the identity of a cluster do, in any namespace. What of it it may say is for admission.
var reporting = map[string][]string{
	"pods":                   {"create", "update", "delete"},
	"persistentvolumeclaims": {"create", "update", "patch", "delete"},
	"events":                 {"create", "update"},
}

// TestTheIdentityOfAClusterReportsAndNothingElse has somebody use the identity by which the syncer of west writes above, for every right there
// is, and for every object of somebody else.
func TestTheIdentityOfAClusterReportsAndNothingElse(t *testing.T) {
	a := enter(t)
	user := v1alpha1.SyncerUserPrefix + "west"
	t.Run("every right", func(t *testing.T) {
		var group errgroup.Group
		group.SetLimit(8)
		var mu sync.Mutex
		tried := 0
		for _, of := range a.served(a.Environment.Logical) {
			resource, sub, _ := strings.Cut(of.Resource, "/")
			for _, namespace := range append(a.everywhere(), "") {
				group.Go(func() error {
					for _, verb := range allVerbs {
						may, err := a.may(t.Context(), user, authorizationv1.ResourceAttributes{
							Namespace: namespace, Verb: verb, Group: of.Group, Version: "*", Resource: resource, Subresource: sub, Name: "web",
						})
						if err != nil {
							return err
						}
						mu.Lock()
						tried++
						mu.Unlock()
						if may && !(of.Group == "" && sub == "" && slices.Contains(reporting[resource], verb)) && !everybodys(of, verb) {
							t.Errorf("it may %s %s in namespace %q", verb, of, namespace)
						}
						if may && (namespace == v1alpha1.SystemNamespace || strings.HasPrefix(namespace, "kube-")) && slices.Contains(reporting[resource], verb) {
							t.Errorf("it may %s %s in namespace %q", verb, of, namespace)
						}
					}
					return nil
				})
			}
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d rights were tried", tried)
		for _, path := range []string{"/metrics", "/configz", "/debug/pprof/heap", "/logs/", "/statusz", "/flagz"} {
			if may, err := a.mayAt(t.Context(), user, path); err != nil || may {
				t.Errorf("it may read %s (%v)", path, err)
			}
		}
	})
	t.Run("every object", func(t *testing.T) {
		a := a.within(t)
		config := rest.CopyConfig(a.Environment.Logical.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{v1alpha1.SyncersGroup}}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range mirrored(t) {
			for _, namespace := range a.everywhere() {
				a.refusedAll(client, of, namespace)
			}
		}
	})
	a.unharmed()
}

// everybodys reports whether whoever has logged in may do something: ask what he himself may do, and for the versions of what he himself may list.
func everybodys(of schema.GroupResource, verb string) bool {
	return verb == "list" && of.Group == "delivery.manifold.dev" && of.Resource == "workloadversions" || verb == "create" && (of.Group == "authorization.k8s.io" && strings.HasPrefix(of.Resource, "selfsubject") || of.Group == "authentication.k8s.io" && of.Resource == "selfsubjectreviews")
}

func (a *arena) may(ctx context.Context, user string, what authorizationv1.ResourceAttributes) (bool, error) {
	review, err := a.Environment.Logical.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{v1alpha1.SyncersGroup, "system:authenticated"}, ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func (a *arena) mayAt(ctx context.Context, user, path string) (bool, error) {
	review, err := a.Environment.Logical.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{v1alpha1.SyncersGroup, "system:authenticated"},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// refusedAll tries to make, change and delete what a namespace has of a resource, without effect if it should succeed.
func (a *arena) refusedAll(client dynamic.Interface, of resourceOf, namespace string) {
	a.Helper()
	dry := []string{metav1.DryRunAll}
	in := client.Resource(of).Namespace(namespace)
	forged := a.claimed(invented(of, namespace, a.unique(evil)), types.UID("u"))
	forged.SetUID("")
	annotate(forged, map[string]string{v1alpha1.AnnotationCluster: "west"})
	_, err := in.Create(a.Context(), forged, metav1.CreateOptions{DryRun: dry})
	tries := map[string]error{"create": err}
	list, err := a.Environment.Logical.Dynamic.Resource(of).Namespace(namespace).List(a.Context(), metav1.ListOptions{})
	if err != nil {
		a.Fatal(err)
	}
	for i := range list.Items {
		obj := &list.Items[i]
		if obj.GetAnnotations()[v1alpha1.AnnotationCluster] == "west" {
			continue // its own
		}
		changed := label(obj.DeepCopy(), map[string]string{"changed": "yes"})
		_, err := in.Update(a.Context(), changed, metav1.UpdateOptions{DryRun: dry})
		tries["update "+obj.GetName()] = err
		_, err = in.UpdateStatus(a.Context(), changed, metav1.UpdateOptions{DryRun: dry})
		tries["update the status of "+obj.GetName()] = err
		_, err = in.Patch(a.Context(), obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{DryRun: dry})
		tries["patch "+obj.GetName()] = err
		tries["delete "+obj.GetName()] = in.Delete(a.Context(), obj.GetName(), metav1.DeleteOptions{DryRun: dry})
		if namespace == metav1.NamespacePublic {
			continue // what is there is for everybody to read
		}
		_, err = in.Get(a.Context(), obj.GetName(), metav1.GetOptions{})
		tries["read "+obj.GetName()] = err
	}
	for _, what := range slices.Sorted(maps.Keys(tries)) {
		err := tries[what]
		refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), `the syncer of cluster "west" may`)
		if !refused && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			a.Errorf("%s in %s: %s: %v, want it forbidden", of.Resource, namespace, what, err)
		}
	}
}

// TestAStolenTokenIsWorthLittle has somebody use the token of a cluster there, for every right of its role, on what is somebody else's, and in
// namespaces of others. What it is refused by other means is with the credential's own tests.
func TestAStolenTokenIsWorthLittle(t *testing.T) {
	a := enter(t)
	thief := a.steal("east")
	strange := a.Namespace + strangers
	east := a.Environment.Physical["east"]
	if _, err := east.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strange}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Environment.CleanupIn(t, east, "delete", "namespace", strange, "--wait=false")
	})
	// A stranger has one of each kind in a namespace of his own, in that of the victim and in "default".
	var theirs []*unstructured.Unstructured
	kinds := sets.New[string]()
	t.Cleanup(func() {
		for _, namespace := range []string{victim, metav1.NamespaceDefault} { // for good, before another test looks
			a.Environment.CleanupIn(t, east, "delete", strings.Join(sets.List(kinds), ","), "stranger", "-n", namespace, "--cascade=foreground", "--ignore-not-found")
		}
	})
	for _, right := range rights.Syncer() {
		for _, plural := range right.Resources {
			of, ok := resourceNamed(right.Group, plural)
			if !ok {
				continue
			}
			for _, namespace := range []string{strange, victim, metav1.NamespaceDefault} {
				obj := manifest(of, "stranger", honestImage)
				if of == services {
					unstructured.RemoveNestedField(obj.Object, "spec", "selector") // endpoints are made by hand
				}
				if of == pods {
					set(obj, map[string]any{"no": "where"}, "spec", "nodeSelector")
					obj.SetLabels(nil) // nobody selects it
					inContainer(obj, "resources", map[string]any{"requests": map[string]any{"cpu": "1m"}})
				}
				if _, divided, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas"); divided {
					set(obj, int64(0), "spec", "replicas")
				}
				if of == daemonSets {
					set(obj, map[string]any{"no": "where"}, "spec", "template", "spec", "nodeSelector")
				}
				if of == quotas {
					set(obj, map[string]any{"pods": "500"}, "spec", "hard")
				}
				theirs = append(theirs, a.createIn(east, namespace, of, obj))
				kinds.Insert(of.GroupResource().String())
			}
		}
	}
	tried := 0
	for _, right := range rights.Syncer() {
		for _, plural := range right.Resources {
			of, whole := resourceNamed(right.Group, plural)
			for _, verb := range right.Verbs {
				for _, namespace := range []string{strange, victim, metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, v1alpha1.SystemNamespace} {
					if verb == "get" || verb == "list" || verb == "watch" {
						continue // reading is wider than writing, as the threat model says
					}
					tried++
					err := a.useRight(thief, of, whole, plural, verb, namespace)
					if err == errNothingToTry {
						tried--
						continue
					}
					if !apierrors.IsForbidden(err) && !(err != nil && strings.Contains(err.Error(), "forbidden")) {
						t.Errorf("%s %s in %s: %v, want it forbidden", verb, plural, namespace, err)
					}
				}
			}
		}
	}
	t.Logf("%d rights were tried", tried)
	for _, was := range theirs {
		of := theirsOf(was)
		now := a.getIn(east, of, was.GetNamespace(), was.GetName())
		if now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil || now.GetGeneration() != was.GetGeneration() || now.GetLabels()["stolen"] != "" {
			t.Errorf("%s %s/%s of a stranger is another one, or is going", of.Resource, was.GetNamespace(), was.GetName())
		}
	}
}

// strangers is how the namespace of somebody ends who has nothing to do with the logical cluster.
const strangers = "-stranger"

// errNothingToTry is for what cannot be tried in a namespace.
var errNothingToTry = fmt.Errorf("there is nothing to try")

// theirsOf returns the resource of what a manifest made.
func theirsOf(obj *unstructured.Unstructured) resourceOf {
	for of, text := range manifests {
		made := parse(text, "x")
		if made["apiVersion"] == obj.GetAPIVersion() && made["kind"] == obj.GetKind() {
			return of
		}
	}
	return resourceOf{}
}

// resourceNamed returns a resource of which there is a manifest.
func resourceNamed(group, plural string) (resourceOf, bool) {
	for of := range manifests {
		if of.Group == group && of.Resource == plural && of != revisions {
			return of, true
		}
	}
	return resourceOf{Group: group, Version: "v1", Resource: plural}, false
}

// steal returns a client with the credential of a cluster.
func (a *arena) steal(cluster string) *rest.Config {
	a.Helper()
	secret, err := a.Environment.Logical.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(a.Context(), "cluster-"+cluster, metav1.GetOptions{})
	if err != nil {
		a.Fatal(err)
	}
	stored, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		a.Fatal(err)
	}
	config := rest.AnonymousClientConfig(a.Environment.Physical[cluster].Config)
	config.BearerToken, config.QPS = stored.BearerToken, -1
	return config
}

// useRight uses a right in a namespace, on what is a stranger's there, or to make something.
func (a *arena) useRight(thief *rest.Config, of resourceOf, whole bool, plural, verb, namespace string) error {
	a.Helper()
	client, err := dynamic.NewForConfig(thief)
	if err != nil {
		a.Fatal(err)
	}
	dry := []string{metav1.DryRunAll}
	if resource, sub, found := strings.Cut(plural, "/"); found {
		return a.useSubresource(thief, resource, sub, verb, namespace)
	}
	if of == namespaces {
		in := client.Resource(of)
		switch verb {
		case "create":
			return errNothingToTry // one of its own may be made
		case "update":
			if namespace == victim {
				return errNothingToTry // it is ours to let go of
			}
			obj := a.getIn(a.Environment.Physical["east"], of, "", namespace)
			_, err := in.Update(a.Context(), label(obj, map[string]string{"stolen": "yes"}), metav1.UpdateOptions{DryRun: dry})
			return err
		case "patch":
			patch := fmt.Sprintf(`{"metadata":{"labels":{"stolen":"yes",%q:%q}}}`, v1alpha1.LabelLogicalCluster, map[bool]string{true: "another", false: a.logical}[namespace == victim])
			_, err := in.Patch(a.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry})
			return err
		case "delete":
			if namespace == victim {
				return errNothingToTry // it is ours to delete
			}
			return in.Delete(a.Context(), namespace, metav1.DeleteOptions{DryRun: dry})
		}
	}
	if !whole {
		return errNothingToTry
	}
	in := client.Resource(of).Namespace(namespace)
	has := namespace == victim || namespace == metav1.NamespaceDefault || strings.HasSuffix(namespace, strangers)
	if verb != "create" && !has {
		return errNothingToTry
	}
	switch verb {
	case "create":
		obj := invented(of, namespace, a.unique(evil))
		obj.SetUID("")
		set(obj, nil, "metadata", "creationTimestamp")
		if !(namespace == victim || namespace == metav1.NamespaceDefault) {
			a.claimed(obj, "u") // where it is ours, marks are what is missing
		}
		_, err := in.Create(a.Context(), obj, metav1.CreateOptions{DryRun: dry})
		return err
	case "update":
		obj := a.getIn(a.Environment.Physical["east"], of, namespace, "stranger")
		_, err := in.Update(a.Context(), a.claimed(label(obj, map[string]string{"stolen": "yes"}), "u"), metav1.UpdateOptions{DryRun: dry})
		return err
	case "patch":
		patch := fmt.Sprintf(`{"metadata":{"labels":{"stolen":"yes",%q:%q}}}`, v1alpha1.LabelLogicalCluster, a.logical)
		_, err := in.Patch(a.Context(), "stranger", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry})
		return err
	case "delete":
		return in.Delete(a.Context(), "stranger", metav1.DeleteOptions{DryRun: dry})
	}
	return errNothingToTry
}

// useSubresource uses a right to a subresource of what is a stranger's.
func (a *arena) useSubresource(thief *rest.Config, resource, sub, verb, namespace string) error {
	a.Helper()
	if !(namespace == victim || strings.HasSuffix(namespace, strangers)) || resource != "pods" && resource != "services" {
		return errNothingToTry
	}
	if namespace == victim && sub != "status" && sub != "resize" && sub != "ephemeralcontainers" {
		return errNothingToTry // commands in pods of our namespaces are within its rights, as the threat model says
	}
	config := rest.CopyConfig(thief)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		a.Fatal(err)
	}
	path := []string{"namespaces", namespace, resource, "stranger", sub}
	var request *rest.Request
	switch verb {
	case "create":
		request = client.Post().AbsPath("/api/v1")
		if sub == "eviction" {
			request = request.Body(fmt.Appendf(nil, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"stranger","namespace":%q}}`, namespace))
		}
	case "update":
		if sub == "ephemeralcontainers" || sub == "resize" || sub == "status" {
			return errNothingToTry // as the patch
		}
		request = client.Put().AbsPath("/api/v1")
	case "patch":
		request = client.Patch(types.MergePatchType).AbsPath("/api/v1").Body([]byte(`{"metadata":{"labels":{"stolen":"yes"}}}`))
	case "delete":
		request = client.Delete().AbsPath("/api/v1")
	}
	if sub == "exec" || sub == "attach" {
		request = request.Param("command", "true").Param("stdout", "true")
	}
	if sub == "eviction" || sub == "status" || sub == "resize" || sub == "ephemeralcontainers" {
		request = request.Param("dryRun", "All") // what connects has no such
	}
	return request.Suffix(path...).Do(a.Context()).Error()
}
