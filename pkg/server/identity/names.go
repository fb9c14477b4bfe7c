package identity

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// IsController reports whether u is one of Manifold's own controllers. What a request may do is for authorization to say.
func IsController(u user.Info) bool {
	if u == nil {
		return false
	}
	_, ok := controllers[u.GetName()]
	return ok
}

// Delivers reports whether u is the controllers of delivery. They write what users have written in files, and say which revisions clusters hold.
func Delivers(u user.Info) bool { return u != nil && u.GetName() == v1alpha1.DeliveryUser }

// ByDelivery reports whether a request comes from the controllers of delivery.
func ByDelivery(ctx context.Context) bool {
	u, _ := request.UserFrom(ctx)
	return Delivers(u)
}

// Controllers returns the names of all of them.
func Controllers() []string { return slices.Sorted(maps.Keys(controllers)) }

// SyncerCluster returns the cluster whose syncer u is, or false.
func SyncerCluster(u user.Info) (string, bool) {
	if u == nil {
		return "", false
	}
	return strings.CutPrefix(u.GetName(), v1alpha1.SyncerUserPrefix)
}

// ByController reports whether a request comes from a controller that writes decisions, summaries or mirrors, which are stored as they come. What
// others write is placed and kept as what users write.
func ByController(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return ok && u != nil && controllers[u.GetName()].stored
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
	_, syncer := SyncerCluster(u)
	return !ok || u.GetName() == user.APIServerUser || syncer || IsController(u)
}
