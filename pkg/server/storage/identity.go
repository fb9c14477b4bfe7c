package storage

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

func byController(ctx context.Context) bool {
	u, _ := request.UserFrom(ctx)
	return IsController(u)
}

// writesMirrors reports whether a request comes from the parts of Manifold that write mirrors and decisions.
func writesMirrors(ctx context.Context) bool {
	_, syncer := bySyncer(ctx)
	return syncer || byController(ctx)
}

func bySyncer(ctx context.Context) (string, bool) {
	u, _ := request.UserFrom(ctx)
	return SyncerCluster(u)
}

// tries reports whether a request is an attempt that asks admission alone, and is none of placement's business.
func tries(ctx context.Context) bool {
	u, _ := request.UserFrom(ctx)
	return u != nil && u.GetName() == v1alpha1.TrialUser
}
