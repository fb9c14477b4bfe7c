// Package access says which pods call the API of the logical cluster, and how: those that have a token of a ServiceAccount that has been given rights
// there, or that say so themselves.
package access

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
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// byGrantee indexes bindings by the ServiceAccounts that they give rights.
const byGrantee = "manifold.dev/grantee"

// defaultAccount is the ServiceAccount that pods run as which name none.
const defaultAccount = "default"

// Access knows the bindings of the logical cluster.
type Access struct {
	// API is how pods reach the logical cluster. Without a Host none are told.
	API   projection.API
	Above *logical.Cluster

	bindings []cache.Indexer
}

// Watch indexes the bindings and has changed called with whoever is given rights, or loses them. It registers by handle, which the caller follows.
func (a *Access) Watch(factory informers.SharedInformerFactory, changed func([]projection.Grantee),
	handle func(cache.SharedIndexInformer, cache.ResourceEventHandler) error,
) error {
	roles := factory.Rbac().V1()
	for _, informer := range []cache.SharedIndexInformer{roles.RoleBindings().Informer(), roles.ClusterRoleBindings().Informer()} {
		if err := informer.AddIndexers(cache.Indexers{byGrantee: indexGrantees}); err != nil {
			return fmt.Errorf("index bindings by whom they give rights: %w", err)
		}
		if err := handle(informer, bindingHandler(changed)); err != nil {
			return err
		}
		a.bindings = append(a.bindings, informer.GetIndexer())
	}
	return nil
}

func bindingHandler(changed func([]projection.Grantee)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(granteesOf(obj)) },
		UpdateFunc: func(old, obj any) {
			before, after := granteesOf(old), granteesOf(obj)
			if !equality.Semantic.DeepEqual(before, after) {
				changed(append(before, after...))
			}
		},
		DeleteFunc: func(obj any) { changed(granteesOf(caches.Last(obj))) },
	}
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

// MayBeGranted reports whether a workload, which is about to be made, cannot be given the API any more once it is made, and runs as a
// ServiceAccount of its own that has no rights yet.
func (a *Access) MayBeGranted(w identity.Workload) bool {
	if _, job := w.Object.(*batchv1.Job); a.API.Host == "" || w.Kind.Resource != identity.Pods && !job {
		return false
	}
	template := w.Kind.Demand(w.Object).Template
	_, says := template.Annotations[v1alpha1.AnnotationAPI]
	account := projection.AccountOf(&template.Spec)
	return !says && account != defaultAccount && !a.granted(w.GetNamespace(), account) && projection.HasToken(&template.Spec, a.account(w.GetNamespace(), account))
}

// account returns a ServiceAccount of the logical cluster, nil if there is none.
func (a *Access) account(namespace, name string) *corev1.ServiceAccount {
	account, _ := a.Above.Get(identity.Key{Resource: identity.Accounts, Namespace: namespace, Name: name}).(*corev1.ServiceAccount)
	return account
}

// granted reports whether a ServiceAccount has been given rights, itself or with all of its namespace.
func (a *Access) granted(namespace, account string) bool {
	for _, bindings := range a.bindings {
		for _, to := range []string{namespace + "/" + account, namespace + "/"} {
			if keys, err := bindings.IndexKeys(byGrantee, to); err == nil && len(keys) > 0 {
				return true
			}
		}
	}
	return false
}

// Of returns how the pods of a workload reach the API of the logical cluster; nil if they call that of their cluster. live is what the cluster
// has of it, nil if nothing.
//
// What was given stays until the template changes, since pods are not replaced for rights that go away, or for what a ServiceAccount says of its
// token; and a pod, which cannot be changed, stays as it was made.
func (a *Access) Of(w identity.Workload, live projection.Object) *projection.API {
	template := w.Kind.Demand(w.Object).Template
	if a.API.Host == "" || template == nil {
		return nil
	}
	out := a.API
	if live != nil && trust.Ours(live, w) {
		given, token := w.Kind.GivenAPI(live)
		pod := w.Kind.Resource == identity.Pods
		if given && (pod || template.Annotations[v1alpha1.AnnotationAPI] != v1alpha1.APICluster && w.Kind.KeepsTemplate(w.Object, live)) {
			out.Token = token
			return &out
		}
		if pod {
			return nil
		}
	}
	name := projection.AccountOf(&template.Spec)
	account := a.account(w.GetNamespace(), name)
	if !projection.CallsAPI(template.Annotations, func() bool {
		// Without a token rights are of no use, and pods would be replaced for nothing.
		return projection.HasToken(&template.Spec, account) && a.granted(w.GetNamespace(), name)
	}) {
		return nil
	}
	out.Token = projection.MountsToken(&template.Spec, account)
	return &out
}

// CallsAPI reports whether a pod that has a token, as it is shown above, calls the logical cluster: as its own annotations say or, for one that a
// controller has made in a cluster, those of the template of its controller above.
func (a *Access) CallsAPI(pod *corev1.Pod) bool {
	annotations := pod.Annotations
	if identity.ShownFrom(pod) != "" {
		annotations = a.templateAnnotations(metav1.GetControllerOfNoCopy(pod), pod.Namespace)
	}
	return projection.CallsAPI(annotations, func() bool { return a.granted(pod.Namespace, projection.AccountOf(&pod.Spec)) })
}

func (a *Access) templateAnnotations(controller *metav1.OwnerReference, namespace string) map[string]string {
	found, _, ok := a.Above.Controller(namespace, controller)
	if !ok {
		return nil
	}
	if template := found.Kind.Demand(found.Object).Template; template != nil {
		return template.Annotations
	}
	return nil
}
