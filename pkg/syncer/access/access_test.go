package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestBindingsTellWhoIsGivenRights(t *testing.T) {
	binding := func(to rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rights"}, Subjects: []rbacv1.Subject{to}}
	}
	one := binding(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "operator"})
	all := binding(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:shop"})
	var told []projection.Grantee
	var handlers []cache.ResourceEventHandler
	a := &Access{}
	err := a.Watch(informers.NewSharedInformerFactory(fake.NewClientset(), 0), func(to []projection.Grantee) { told = append(told, to...) },
		func(_ cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
			handlers = append(handlers, handler)
			return nil
		})
	if err != nil || len(handlers) != 2 {
		t.Fatalf("%d kinds of bindings are watched, %v", len(handlers), err)
	}
	operator, everybody := projection.Grantee{Namespace: "shop", Name: "operator"}, projection.Grantee{Namespace: "shop"}
	for name, test := range map[string]struct {
		happen func(cache.ResourceEventHandler)
		want   []projection.Grantee
	}{
		"one that is made":              {func(h cache.ResourceEventHandler) { h.OnAdd(one, false) }, []projection.Grantee{operator}},
		"one that changes for nobody":   {func(h cache.ResourceEventHandler) { h.OnUpdate(one, one.DeepCopy()) }, nil},
		"one that comes to name others": {func(h cache.ResourceEventHandler) { h.OnUpdate(one, all) }, []projection.Grantee{operator, everybody}},
		"one that goes unseen": {func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Obj: one})
		}, []projection.Grantee{operator}},
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			test.happen(handlers[0])
			if diff := cmp.Diff(test.want, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}
