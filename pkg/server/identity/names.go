package identity

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// IsController reports whether u is Manifold itself: its controllers, or one of those that have rights of their own. What a request may do is for
// authorization to say; this tells only by whom a decision, a summary or a mirror is written.
func IsController(u user.Info) bool {
	return u != nil && (u.GetName() == v1alpha1.ControllerUser || strings.HasPrefix(u.GetName(), v1alpha1.ControllerUser+":"))
}

// SyncerCluster returns the cluster whose syncer u is, or false.
func SyncerCluster(u user.Info) (string, bool) {
	if u == nil {
		return "", false
	}
	return strings.CutPrefix(u.GetName(), v1alpha1.SyncerUserPrefix)
}

// ByController reports whether a request comes from Manifold itself, as IsController says.
func ByController(ctx context.Context) bool {
	u, _ := request.UserFrom(ctx)
	return IsController(u)
}

// WritesMirrors reports whether a request comes from the parts of Manifold that write mirrors and decisions.
func WritesMirrors(ctx context.Context) bool {
	_, syncer := BySyncer(ctx)
	return syncer || ByController(ctx)
}

// BySyncer returns the cluster from whose syncer a request comes, or false.
func BySyncer(ctx context.Context) (string, bool) {
	u, _ := request.UserFrom(ctx)
	return SyncerCluster(u)
}

// Tries reports whether a request is an attempt that asks admission alone, and is none of placement's business.
func Tries(ctx context.Context) bool {
	u, _ := request.UserFrom(ctx)
	return u != nil && u.GetName() == v1alpha1.TrialUser
}

// FromWithin reports whether the request comes from this process: the garbage collector and others have no reason to wait.
func FromWithin(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return !ok || u.GetName() == user.APIServerUser || WritesMirrors(ctx)
}
