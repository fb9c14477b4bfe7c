package workloads

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// right is to list a resource in a namespace, or in all.
type right struct {
	resource  schema.GroupVersionResource
	namespace string
}

// rights are those of the caller, each asked for once in a request.
type rights struct {
	authorizer authorizer.Authorizer
	user       user.Info
	may        map[right]bool
}

// list reports whether the caller may list a resource in a namespace. Who may do so everywhere may there, too.
func (r *rights) list(ctx context.Context, resource schema.GroupVersionResource, namespace string) bool {
	return r.has(ctx, right{resource, metav1.NamespaceAll}) || namespace != metav1.NamespaceAll && r.has(ctx, right{resource, namespace})
}

func (r *rights) has(ctx context.Context, of right) bool {
	if may, asked := r.may[of]; asked {
		return may
	}
	decision, _, _ := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: r.user, Verb: "list", ResourceRequest: true,
		APIGroup: of.resource.Group, APIVersion: of.resource.Version, Resource: of.resource.Resource, Namespace: of.namespace,
	})
	r.may[of] = decision == authorizer.DecisionAllow // what cannot be decided is not allowed
	return r.may[of]
}
