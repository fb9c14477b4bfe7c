package syncer

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// byGrantee indexes bindings by the ServiceAccounts that they give rights.
const byGrantee = "manifold.dev/grantee"

// defaultAccount is the ServiceAccount that pods run as which name none.
const defaultAccount = "default"

var accountResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// grants are the bindings of the logical cluster.
type grants []cache.Indexer

// watchBindings has workloads looked at again whose ServiceAccount is given rights, or loses them.
func (u *Upstream) watchBindings(factory informers.SharedInformerFactory) error {
	roles := factory.Rbac().V1()
	for _, informer := range []cache.SharedIndexInformer{roles.RoleBindings().Informer(), roles.ClusterRoleBindings().Informer()} {
		if err := informer.AddIndexers(cache.Indexers{byGrantee: indexGrantees}); err != nil {
			return fmt.Errorf("index bindings by whom they give rights: %w", err)
		}
		if err := u.handle(informer, u.bindingHandler()); err != nil {
			return err
		}
		u.grants = append(u.grants, informer.GetIndexer())
	}
	return nil
}

func granteesOf(binding any) []projection.Grantee {
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		return projection.Grantees(b.Namespace, b.Subjects)
	case *rbacv1.ClusterRoleBinding:
		return projection.Grantees("", b.Subjects)
	}
	return nil
}

func indexGrantees(binding any) ([]string, error) {
	var out []string
	for _, to := range granteesOf(binding) {
		out = append(out, to.Namespace+"/"+to.Name)
	}
	return out, nil
}

// grantTries is how often in a row a pod or Job waits for rights that its ServiceAccount may be about to have: for a third of a second. Charts and
// manifests bring all of them at once, in whatever order, and each kind is watched by itself.
const grantTries = 3

// mayBeGranted reports whether a workload, which is about to be made, cannot be given the API any more once it is made, and runs as a
// ServiceAccount of its own that has no rights yet.
func (u *Upstream) mayBeGranted(w identity.Workload) bool {
	if _, job := w.Object.(*batchv1.Job); u.API.Host == "" || w.Kind.Resource != podResource && !job {
		return false
	}
	template := w.Kind.Demand(w.Object).Template
	_, says := template.Annotations[v1alpha1.AnnotationAPI]
	account := projection.AccountOf(&template.Spec)
	return !says && account != defaultAccount && !u.granted(w.GetNamespace(), account)
}

// granted reports whether a ServiceAccount has been given rights, itself or with all of its namespace.
func (u *Upstream) granted(namespace, account string) bool {
	for _, bindings := range u.grants {
		for _, to := range []string{namespace + "/" + account, namespace + "/"} {
			if keys, err := bindings.IndexKeys(byGrantee, to); err == nil && len(keys) > 0 {
				return true
			}
		}
	}
	return false
}

func (u *Upstream) bindingHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { u.routeGrantees(granteesOf(obj)) },
		UpdateFunc: func(old, obj any) {
			before, after := granteesOf(old), granteesOf(obj)
			if !equality.Semantic.DeepEqual(before, after) {
				u.routeGrantees(append(before, after...))
			}
		},
		DeleteFunc: func(obj any) { u.routeGrantees(granteesOf(untombed(obj))) },
	}
}

// routeGrantees has the workloads looked at that run as these ServiceAccounts.
func (u *Upstream) routeGrantees(to []projection.Grantee) {
	syncers := u.Syncers()
	if len(syncers) == 0 {
		return
	}
	for _, grantee := range to {
		for _, w := range u.runningAs(grantee) {
			key, decision := w.Key(), identity.DecisionOf(w)
			for _, s := range syncers {
				if _, placed := decision[s.cluster]; placed || s.holds(key) {
					s.enqueue(key)
				}
			}
		}
	}
}

func (u *Upstream) runningAs(account projection.Grantee) []identity.Workload {
	if account.Name == "" {
		return u.WorkloadsIn(account.Namespace)
	}
	var out []identity.Workload
	for _, kind := range projection.Workloads() {
		for _, obj := range u.Referring(kind.Resource, identity.Key{Resource: accountResource, Namespace: account.Namespace, Name: account.Name}) {
			out = append(out, identity.Workload{Kind: kind, Object: obj})
		}
	}
	return out
}

// api returns how the pods of a workload reach the API of the logical cluster; nil if they call that of their cluster. live is what the cluster
// has of it, nil if nothing.
//
// What was given stays until the template changes, since pods are not replaced for rights that go away, or for what a ServiceAccount says of its
// token; and a pod, which cannot be changed, stays as it was made.
func (u *Upstream) api(w identity.Workload, live projection.Object) *projection.API {
	template := w.Kind.Demand(w.Object).Template
	if u.API.Host == "" || template == nil {
		return nil
	}
	out := u.API
	if live != nil && ours(live, w) {
		given, token := w.Kind.GivenAPI(live)
		pod := w.Kind.Resource == podResource
		if given && (pod || template.Annotations[v1alpha1.AnnotationAPI] != v1alpha1.APICluster && w.Kind.KeepsTemplate(w.Object, live)) {
			out.Token = token
			return &out
		}
		if pod {
			return nil
		}
	}
	account := projection.AccountOf(&template.Spec)
	if !u.calls(template.Annotations, w.GetNamespace(), account) {
		return nil
	}
	above, _ := u.Get(identity.Key{Resource: accountResource, Namespace: w.GetNamespace(), Name: account}).(*corev1.ServiceAccount)
	out.Token = projection.MountsToken(&template.Spec, above)
	return &out
}

func (u *Upstream) calls(annotations map[string]string, namespace, account string) bool {
	return projection.CallsAPI(annotations, func() bool { return u.granted(namespace, account) })
}

// CallsAPI reports whether a pod, as it is shown above, calls the logical cluster: as its own annotations say or, for one that a controller has made
// in a cluster, those of the template of its controller above.
func (u *Upstream) CallsAPI(pod *corev1.Pod) bool {
	annotations := pod.Annotations
	if identity.ShownFrom(pod) != "" {
		annotations = u.templateAnnotations(metav1.GetControllerOfNoCopy(pod), pod.Namespace)
	}
	return u.calls(annotations, pod.Namespace, projection.AccountOf(&pod.Spec))
}

func (u *Upstream) templateAnnotations(controller *metav1.OwnerReference, namespace string) map[string]string {
	found, _, ok := u.Controller(namespace, controller)
	if !ok {
		return nil
	}
	if template := found.Kind.Demand(found.Object).Template; template != nil {
		return template.Annotations
	}
	return nil
}
